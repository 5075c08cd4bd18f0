"""What the rule of promotion works on: its parameters, and blocks as it sees them.

`RuleParameters` is what `judge_started.params` holds: every default filled in, so that a
decision can be made again from the ledger without contract, kit or code of that day.
Source: the design page on judging, 3.1 to 3.3 and 3.8. Fractions are plain (0.03 is 3 %).
"""

from typing import Literal, TypeAlias

import msgspec

from thermite.schema.contract import Direction, Judging, Primary
from thermite.schema.strict import Strict
from thermite.schema.verdict import JudgeStage

MetricKind: TypeAlias = Literal["rate", "time", "check"]


class MetricRule(Strict):
    """How one metric's value comes about.

    field: what the check prints it under (kind check); work: the parameter of each measured
    cell that a rate divides by the time, as JSON text, so that no digit is lost and none is
    too large for the ledger; a cell without it is absent.
    """

    kind: MetricKind
    unit: str
    field: str | None
    work: dict[str, str]


class GuardRule(Strict):
    """One series that must not get worse by more than allowed_loss: a mean over its cells.

    A guard `per_cell` becomes one of these for each cell, and so does `cell_allowed_loss`,
    on the primary metric.
    """

    name: str
    metric: str
    direction: Direction
    allowed_loss: float
    cells: list[str]


class ConstraintRule(Strict):
    """A bound that each run of the candidate keeps in each of the cells."""

    metric: str
    min: float | None
    max: float | None
    cells: list[str]


class RuleParameters(Strict):
    """Every parameter of the rule, filled in.

    weights: by cell, sum 1; metrics: those that the contract names; order_effect: how far
    the rig's selftest saw the two orders apart (a log-ratio, 0 or more); startup_share: of
    each visible cell, the share of a run that a program which does nothing takes too.
    """

    target: str
    primary: Primary
    min_effect: float
    cells: list[str]
    weights: dict[str, float]
    held_out_cells: list[str]
    secondary: list[Primary]
    guards: list[GuardRule]
    constraints: list[ConstraintRule]
    metrics: dict[str, MetricRule]
    order_effect: float
    judging: Judging
    startup_share: dict[str, float] = msgspec.field(default_factory=dict)


class MeasuredBlock(Strict):
    """One counted block: ln(candidate/champion) by metric and cell, and who ran first.

    values: of the metrics that the check prints, candidate's and champion's by metric and cell.
    """

    stage: JudgeStage
    block: int
    ln_ratio: dict[str, dict[str, float]]
    champion_first: dict[str, bool]
    values: dict[str, dict[str, tuple[float, float]]] = msgspec.field(default_factory=dict)


class GoalRun(Strict):
    """What became of a run for goals; failure: its reason, None for one that ended well.

    block: the run's number in its cell, None for a warm-up; values: by metric, empty for a
    failed run; disturbed: the machine got in its way.
    """

    cell: str
    block: int | None
    failure: str | None
    values: dict[str, float]
    disturbed: bool = False
