"""The bounds that a decision tells, held against the blocks that it rests on.

Source: the design page on judging, 3.2.
"""

import math
from collections.abc import Sequence
from typing import Final

from thermite.judge.verdict import exact
from thermite.judge.verdict.evidence import is_lower_bound, lower_bound, upper_bound
from thermite.judge.verdict.rule import stage_d
from thermite.schema.event import Decision, Interval
from thermite.schema.rule import MeasuredBlock, RuleParameters

SAME: Final = 1e-6
"""How far a figure may lie from the recorded one (judging, 3.2)."""


def bounds_problem(
    told: Decision, blocks: Sequence[MeasuredBlock], p: RuleParameters
) -> str | None:
    """Return the bounds that a decision should have told, None when it told those.

    Args:
        told: its T is already known to follow from the blocks.
        blocks: the counted blocks of its stage.
    """
    if told.action == "continue":
        return None if (told.lcb, told.ucb) == (None, None) else "no lcb, no ucb yet"
    if told.rule == exact.RULE:
        own = (told.T, told.T)
        return None if is_same_interval((told.lcb, told.ucb), own) else _said(*own)
    d = [stage_d(told.stage, block, p) for block in blocks]
    mirrored = None if told.ucb is None else -told.ucb
    if is_lower_bound(d, told.lcb, SAME) and is_lower_bound([-v for v in d], mirrored, SAME):
        return None
    return _said(lower_bound(d), upper_bound(d))


def is_same(told: float | None, made: float | None) -> bool:
    """Return whether two figures are the same but for their last digits, or both are not there."""
    if told is None or made is None:
        return told is made
    return math.isclose(told, made, rel_tol=SAME, abs_tol=SAME)


def is_same_interval(told: Interval | None, made: Interval | None) -> bool:
    """Return whether two intervals end where the other does, or are open there."""
    if told is None or made is None:
        return told is made
    return all(is_same(a, b) for a, b in zip(told, made, strict=True))


def _said(low: float | None, high: float | None) -> str:
    parts = (
        f"{name} {value:.7f}" if value is not None else f"no {name}"
        for name, value in (("lcb", low), ("ucb", high))
    )
    return ", ".join(parts)
