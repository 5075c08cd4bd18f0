"""Whether a metric reaches a goal's bound in one cell, decided on evidence over several runs.

One run after another, each value held against the bound: D = ln(value/min), or ln(max/value).
No coin makes this exact: it holds for noise whose better side is not the heavier one, which
run times satisfy. Source: the design page on judging, 3.9.
"""

import math
from collections.abc import Sequence
from statistics import median
from typing import Final

from thermite.judge.verdict.evidence import ln_evidence
from thermite.schema.contract import ThresholdGoal
from thermite.schema.strict import Strict

FEWEST_RUNS: Final = 10
"""Runs before evidence counts (judging, 3.9)."""
EVIDENCE: Final = math.log(100.0)
"""ln E that shows a bound reached: alpha 0.01 (judging, 3.9)."""
EXACT_RUNS: Final = 3
"""So many equal values of the check decide at once (judging, 3.9, `exact-1`)."""


class Reached(Strict):
    """What came of a cell: met, or what was found against the bound."""

    met: bool
    said: str | None


def reached(
    values: Sequence[float], goal: ThresholdGoal, *, runs: int, exact: bool
) -> Reached | None:
    """Return whether the bound is reached in a cell, None while another run is due.

    Args:
        values: of the runs that nothing disturbed, in order, each finite and above zero.
        runs: how many were made, the disturbed ones too.
        exact: whether the check prints the metric, so that equal values are the whole truth.
    """
    if exact and len(values) == EXACT_RUNS and len(set(values)) == 1:
        return _answer(values, goal, met=distance(values[0], goal) > 0.0)
    if len(values) >= FEWEST_RUNS and ln_evidence([distance(v, goal) for v in values]) >= EVIDENCE:
        return _answer(values, goal, met=True)
    return _answer(values, goal, met=False) if runs >= goal.runs else None


def distance(value: float, goal: ThresholdGoal) -> float:
    """Return how far a value lies on the good side of the bound, a log-ratio."""
    if goal.min is not None:
        return math.log(value) - math.log(goal.min)
    return math.log(bound(goal)) - math.log(value)


def bound(goal: ThresholdGoal) -> float:
    """Return the value that is asked for."""
    found = goal.min if goal.min is not None else goal.max
    if found is None:
        raise ValueError("a threshold has min or max")
    return found


def _answer(values: Sequence[float], goal: ThresholdGoal, *, met: bool) -> Reached:
    if met:
        return Reached(met=True, said=None)
    if not values:
        return Reached(met=False, said=f"{goal.runs} runs, every one disturbed by the machine")
    said = f"{len(values)} runs, median {median(values):g} against {bound(goal):g}"
    return Reached(met=False, said=said)
