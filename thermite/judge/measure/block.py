"""A block's comparison: ln(candidate/champion) of every metric in every cell.

Works on the facts as the ledger holds them, so that an audit makes the same blocks from
`run` and `check` events. Source: the design page on judging, 3.1 and 3.8.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from thermite.judge.measure.metric import Missing, value
from thermite.judge.measure.printed import as_float
from thermite.schema.event import Check, Run
from thermite.schema.rule import ConstraintRule, MeasuredBlock, MetricRule
from thermite.schema.strict import Strict
from thermite.schema.verdict import Arm, JudgeStage

Pair: TypeAlias = tuple[Run, Check | None]
"""A run and its check; a run that failed before it was checked has none."""


def paired(facts: Iterable[Strict]) -> list[Pair]:
    """Return the runs among some facts, each with the check that follows it at once."""
    pairs: list[Pair] = []
    for fact in facts:
        if isinstance(fact, Run):
            pairs.append((fact, None))
        elif isinstance(fact, Check) and pairs:
            pairs[-1] = (pairs[-1][0], fact)
    return pairs


def values(run: Run, check: Check | None, metrics: Mapping[str, MetricRule]) -> dict[str, float]:
    """Return each metric's value of one run, none for a run that failed.

    Raises:
        InfrastructureError: a rate has no work to divide.
    """
    if run.outcome != "ok" or run.record is None:
        return {}
    t_ns, made = run.record.t_ns, dict[str, float]()
    for name, rule in metrics.items():
        numbers = {}
        if check is not None and rule.field is not None and rule.field in check.fields:
            numbers = {rule.field: as_float(check.fields[rule.field])}
        found = value(name, rule, run.cell, t_ns, numbers)
        if not isinstance(found, Missing):
            made[name] = found
    return made


def measured(
    stage: JudgeStage, block: int, pairs: Sequence[Pair], metrics: Mapping[str, MetricRule]
) -> MeasuredBlock:
    """Return a counted block from its runs and checks; the runs' positions say who was first.

    Raises:
        KeyError: an arm has no value in a cell, so the block does not count; a bug of ours.
    """
    found = {(run.cell, run.arm): values(run, check, metrics) for run, check in pairs}
    first = _first_arms([run for run, _ in pairs])
    ratios: dict[str, dict[str, float]] = {name: {} for name in metrics}
    printed = [name for name, one in metrics.items() if one.kind == "check"]
    shown: dict[str, dict[str, tuple[float, float]]] = {name: {} for name in printed}
    for cell in first:
        ours, theirs = found[cell, "candidate"], found[cell, "champion"]
        for name in metrics:
            # A difference of logarithms: the ratio itself could leave the range of a float.
            ratios[name][cell] = math.log(ours[name]) - math.log(theirs[name])
        for name in printed:
            shown[name][cell] = (ours[name], theirs[name])
    return MeasuredBlock(
        stage=stage,
        block=block,
        ln_ratio=ratios,
        champion_first={cell: arm == "champion" for cell, arm in first.items()},
        values=shown,
    )


def broken_constraints(
    pairs: Iterable[Pair], constraints: Sequence[ConstraintRule], metrics: Mapping[str, MetricRule]
) -> list[tuple[Arm, str]]:
    """Return each hard constraint that a run breaks: whose run, and the text that says so."""
    broken: list[tuple[Arm, str]] = []
    if not constraints:
        return broken
    for run, check in pairs:
        found = values(run, check, metrics)
        for rule in constraints:
            if run.cell in rule.cells and rule.metric in found:
                text = _broken(rule, run.cell, found[rule.metric])
                broken += [(run.arm, text)] if text else []
    return broken


def _broken(rule: ConstraintRule, cell: str, found: float) -> str | None:
    said = f"{rule.metric} of cell {cell} is {found:g}, and the contract asks for"
    if rule.min is not None and found < rule.min:
        return f"{said} at least {rule.min:g}"
    if rule.max is not None and found > rule.max:
        return f"{said} at most {rule.max:g}"
    return None


def _first_arms(runs: Sequence[Run]) -> dict[str, Arm]:
    latest_first = sorted(runs, key=lambda run: -run.position)
    return {run.cell: run.arm for run in latest_first}
