"""Does the order of a pair change its outcome? A candidate may slow whatever runs next.

Such a carry-over wins blocks despite the coin, since only one order shows it. A promotion
whose two orders disagree is held for a person. Source: the design page on judging, 3.4.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from thermite.judge.verdict.evidence import trimmed_mean
from thermite.schema.strict import Strict

SIGNIFICANT: Final = 0.003
"""Two-sided p of the rank-sum test below which the orders differ (judging, 3.4)."""


class Pair(Strict):
    """One counted pair of runs: d, signed log-ratio, and which arm ran first."""

    cell: str
    d: float
    champion_first: bool


def order_effect(pairs: Sequence[Pair]) -> tuple[float, float] | None:
    """Return how far candidate-first lies above champion-first, and the two-sided p.

    Each value counts less its cell's trimmed mean. None when one order never occurred.
    """
    centres = _centres(pairs)
    last = [pair.d - centres[pair.cell] for pair in pairs if pair.champion_first]
    first = [pair.d - centres[pair.cell] for pair in pairs if not pair.champion_first]
    if not first or not last:
        return None
    return trimmed_mean(first) - trimmed_mean(last), rank_sum_p(first, last)


def rank_sum_p(left: Sequence[float], right: Sequence[float]) -> float:
    """Return the two-sided p of the rank-sum test: normal approximation, ties corrected."""
    ranks, ties = _ranks([*left, *right])
    m, n = len(left), len(right)
    total = m + n
    mean = m * (total + 1) / 2.0
    tie_share = math.fsum(t**3 - t for t in ties) / (total * (total - 1)) if total > 1 else 0.0
    variance = m * n / 12.0 * (total + 1 - tie_share)
    if variance <= 0.0:  # all values equal: the orders can't be told apart
        return 1.0
    z = (math.fsum(ranks[:m]) - mean) / math.sqrt(variance)
    return math.erfc(abs(z) / math.sqrt(2.0))


def _centres(pairs: Sequence[Pair]) -> Mapping[str, float]:
    by_cell: dict[str, list[float]] = {}
    for pair in pairs:
        by_cell.setdefault(pair.cell, []).append(pair.d)
    return {cell: trimmed_mean(values) for cell, values in by_cell.items()}


def _ranks(values: Sequence[float]) -> tuple[list[float], list[int]]:
    """Return each value's rank from 1, equal values sharing the mean, and the ties' sizes."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    ties = []
    start = 0
    while start < len(order):
        end = start
        while end < len(order) and values[order[end]] == values[order[start]]:
            end += 1
        for place in order[start:end]:
            ranks[place] = (start + 1 + end) / 2.0
        ties.append(end - start)
        start = end
    return ranks, ties
