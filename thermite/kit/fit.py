"""Hold a kit against a contract: everything that does not fit, in words.

Source: the reference page "Kit manifest", The kit against the contract; kit requirements
16 and D40; ours: the design page on the contract.
"""

from collections.abc import Iterator

import msgspec

from thermite.schema.contract import CodeGoal, Contract, Guard, Primary, ThresholdGoal
from thermite.schema.contract_rules import cell_problems, evidence_problems
from thermite.schema.document import printable
from thermite.schema.kit import Kit, TimeMetric

DOES_NOT_FIT = "the kit does not fit the contract: "
"""What stands before the problems, which are joined with `; `."""


def fit_problems(kit: Kit, contract: Contract, rig_target: str) -> list[str]:
    """Return what keeps this kit from judging this contract on such a rig, each text once."""
    problems = [*_target_problems(kit, rig_target)]
    if contract.campaign == "hill_climb":
        problems += [*_cell_problems(kit, contract), *_metric_problems(kit, contract)]
        problems += [text for _, text in cell_problems(msgspec.to_builtins(contract))]
        attempts = contract.budget.attempts
        problems += [text for _, text in evidence_problems(contract.judging, attempts)]
    else:
        problems += _goal_problems(kit, contract)
    return list(dict.fromkeys(printable(text) for text in problems))


def fit_warnings(kit: Kit, contract: Contract) -> list[str]:
    """Return what fits and is hardly meant: the slower of two taken for the better."""
    asked = contract.objective
    named: list[tuple[str, Primary | Guard]] = []
    if asked is not None:
        named.append(("objective.primary", asked.primary))
    named += [(f"guards[{at}]", guard) for at, guard in enumerate(contract.guards)]
    return [
        f"{place}: {one.metric} is the run's time, and direction max, which is also what holds"
        ' where none is written, takes the slower for the better: write direction = "min"'
        for place, one in named
        if isinstance(kit.metrics.get(one.metric), TimeMetric) and one.direction == "max"
    ]


def _target_problems(kit: Kit, rig_target: str) -> Iterator[str]:
    if kit.target != rig_target:
        yield f"the kit measures on {kit.target}, and this rig's target is {rig_target}"


def _cell_problems(kit: Kit, contract: Contract) -> Iterator[str]:
    for field, cells in (("cells", contract.cells), ("held_out_cells", contract.held_out_cells)):
        for cell in cells:
            if cell not in kit.cells:
                yield f"{field} names cell {cell}, which the kit does not have"


def _metric_problems(kit: Kit, contract: Contract) -> Iterator[str]:
    objective = contract.objective
    named = [("the objective", objective.primary.metric)] if objective else []
    if objective:
        named += [("a secondary objective", one.metric) for one in objective.secondary]
    named += [("a guard", one.metric) for one in contract.guards]
    named += [
        ("a hard constraint", one.metric)
        for one in contract.hard_constraints
        if one.min is not None or one.max is not None
    ]
    for what, metric in named:
        if metric not in kit.metrics:
            yield f"{what} names metric {metric}, which the kit does not have"


def _goal_problems(kit: Kit, contract: Contract) -> Iterator[str]:
    """Section 16's order: verifiers of all goals, then metrics, then cells."""
    for goal in contract.goals:
        if isinstance(goal.verify, CodeGoal) and goal.verify.verifier not in kit.verifiers:
            yield (
                f"goal {goal.id} names verifier {goal.verify.verifier}, which the kit does not have"
            )
    thresholds = [
        (goal.id, goal.verify) for goal in contract.goals if isinstance(goal.verify, ThresholdGoal)
    ]
    for goal_id, verify in thresholds:
        if verify.metric not in kit.metrics:
            yield f"goal {goal_id} names metric {verify.metric}, which the kit does not have"
    for goal_id, verify in thresholds:
        for cell in verify.cells:
            if cell not in kit.cells:
                yield f"goal {goal_id} names cell {cell}, which the kit does not have"
