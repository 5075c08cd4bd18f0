"""From a contract to the parameters of the rule, every default filled in.

Source: the design page on judging, 3.2 and 3.3.
"""

import json
import math
from collections.abc import Sequence

import msgspec

from thermite.schema.contract import (
    CPU_MIN_EFFECT,
    GPU_MIN_EFFECT,
    CodeGoal,
    Contract,
    Guard,
    Judging,
    Objective,
    Primary,
    ThresholdGoal,
)
from thermite.schema.goal_rules import GoalRules
from thermite.schema.kit import CheckMetric, Kit, Metric, RateMetric
from thermite.schema.rule import ConstraintRule, GuardRule, MetricRule, RuleParameters


def alpha_k(judging: Judging, k: int) -> float:
    """Return the share of the campaign's alpha that attempt k may spend, k from 1."""
    tranche = (k - 1) // judging.alpha_horizon
    return judging.alpha_campaign * math.pow(2.0, -(tranche + 1)) / judging.alpha_horizon


def rule_parameters(
    contract: Contract, kit: Kit, target: str, *, order_effect: float = 0.0
) -> RuleParameters:
    """Return the parameters of the rule; without an objective all of the kit's metrics count.

    Args:
        target: the rig's, e.g. `cpu`; it decides the default of min_effect and of reset.
        order_effect: of the rig's newest selftest, a log-ratio.

    Raises:
        KeyError: the contract names a metric that the kit lacks. The fit with the kit is
            checked when the contract is assigned, so this is a bug of ours.
    """
    objective = contract.objective or _any_objective(kit)
    named = _named_metrics(contract, objective) if contract.objective else list(kit.metrics)
    measured = [*contract.cells, *contract.held_out_cells] if contract.cells else list(kit.cells)
    return RuleParameters(
        target=target,
        primary=objective.primary,
        min_effect=min_effect(objective, target),
        cells=list(contract.cells),
        weights=_weights(objective, contract.cells),
        held_out_cells=list(contract.held_out_cells),
        secondary=list(objective.secondary),
        guards=_guard_rules(contract, objective),
        constraints=[
            ConstraintRule(metric=c.metric, min=c.min, max=c.max, cells=c.cells or contract.cells)
            for c in contract.hard_constraints
        ],
        metrics={name: metric_rule(kit, name, measured) for name in named},
        order_effect=order_effect,
        judging=_filled_in(contract.judging, target),
    )


def min_effect(objective: Objective, target: str) -> float:
    """Return the smallest gain worth a promotion, a fraction."""
    if objective.min_effect is not None:
        return objective.min_effect
    return CPU_MIN_EFFECT if target == "cpu" else GPU_MIN_EFFECT


def metric_rule(kit: Kit, name: str, cells: Sequence[str]) -> MetricRule:
    """Return how a metric of the kit is worked out in each of these cells."""
    metric: Metric = kit.metrics[name]
    if isinstance(metric, RateMetric):
        having = {cell: kit.cells[cell] for cell in cells if metric.work in kit.cells[cell]}
        work = {
            cell: json.dumps(params[metric.work], ensure_ascii=False)
            for cell, params in having.items()
        }
        return MetricRule(kind="rate", unit=metric.unit, field=None, work=work)
    if isinstance(metric, CheckMetric):
        return MetricRule(kind="check", unit=metric.unit, field=metric.field, work={})
    return MetricRule(kind="time", unit=metric.unit, field=None, work={})


def goal_rules(contract: Contract, kit: Kit) -> GoalRules:
    """Return what the kit says of a contract's goals; the kit fits the contract."""
    thresholds = [g.verify for g in contract.goals if isinstance(g.verify, ThresholdGoal)]
    cells: dict[str, list[str]] = {}
    for one in thresholds:
        cells.setdefault(one.metric, []).extend(one.cells)
    waiting = [g.verify.verifier for g in contract.goals if isinstance(g.verify, CodeGoal)]
    needed: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += kit.verifiers[name].requires
    return GoalRules(
        verifiers={name: one for name, one in kit.verifiers.items() if name in needed},
        metrics={
            name: metric_rule(kit, name, list(dict.fromkeys(of))) for name, of in cells.items()
        },
        held_out=[cell for cell in dict.fromkeys(contract.held_out_cells) if cell in kit.cells],
    )


def _any_objective(kit: Kit) -> Objective:
    # A candidate that is judged alone is compared with nothing: any metric will do.
    return Objective(primary=Primary(metric=next(iter(kit.metrics), "")))


def _named_metrics(contract: Contract, objective: Objective) -> list[str]:
    names = [objective.primary.metric]
    names += [secondary.metric for secondary in objective.secondary]
    names += [guard.metric for guard in contract.guards]
    names += [constraint.metric for constraint in contract.hard_constraints]
    return list(dict.fromkeys(names))


def _weights(objective: Objective, cells: list[str]) -> dict[str, float]:
    given = objective.weights or {}
    raw = {cell: given.get(cell, 1.0) for cell in cells}
    total = math.fsum(raw.values())
    return {cell: weight / total for cell, weight in raw.items()}


def _guard_rules(contract: Contract, objective: Objective) -> list[GuardRule]:
    rules = []
    for place, guard in enumerate(contract.guards):
        rules += _one_guard(guard, f"guard {place + 1}", contract.cells)
    loss = contract.judging.cell_allowed_loss
    if loss is not None:
        primary = objective.primary
        rules += [
            GuardRule(
                name=f"{primary.metric} in {cell}",
                metric=primary.metric,
                direction=primary.direction,
                allowed_loss=loss,
                cells=[cell],
            )
            for cell in contract.cells
        ]
    return rules


def _one_guard(guard: Guard, name: str, all_cells: list[str]) -> list[GuardRule]:
    # Two guards may name one metric in different cells, so a guard's place is in its name.
    cells = guard.cells or all_cells
    groups = [[cell] for cell in cells] if guard.per_cell else [cells]
    return [
        GuardRule(
            name=f"{name}: {guard.metric}" + (f" in {group[0]}" if guard.per_cell else ""),
            metric=guard.metric,
            direction=guard.direction,
            allowed_loss=guard.allowed_loss,
            cells=group,
        )
        for group in groups
    ]


def _filled_in(judging: Judging, target: str) -> Judging:
    reset = judging.reset or ("spin" if target == "cpu" else "kernel")
    return msgspec.structs.replace(judging, reset=reset)
