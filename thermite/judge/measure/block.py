"""A block's comparison: ln(candidate/champion) of every metric in every cell.

Works on the facts as the ledger holds them, so that an audit makes the same blocks from
`run` and `check` events. Source: the design page on judging, 3.1 and 3.8.
"""

import math
from collections.abc import Mapping, Sequence

from thermite.judge.measure.metric import Missing, value
from thermite.judge.measure.printed import as_float
from thermite.schema.event import Check, Run
from thermite.schema.rule import MeasuredBlock, MetricRule
from thermite.schema.verdict import Arm, JudgeStage

Values = Mapping[tuple[str, Arm], Mapping[str, float]]
"""By cell and arm: each metric's value of that run."""


def run_values(
    runs: Sequence[Run], checks: Sequence[Check], metrics: Mapping[str, MetricRule]
) -> dict[tuple[str, Arm], dict[str, float]]:
    """Return the values of the good runs among some of one block (or of one job).

    A later run of the same cell and arm takes the place of an earlier one.

    Raises:
        InfrastructureError: a rate has no work to divide.
    """
    printed = {(check.cell, check.arm): check.fields for check in checks}
    found: dict[tuple[str, Arm], dict[str, float]] = {}
    for run in runs:
        if run.outcome == "ok" and run.record is not None:
            fields = printed.get((run.cell, run.arm), {})
            found[run.cell, run.arm] = _values(run.cell, run.record.t_ns, fields, metrics)
    return found


def _values(
    cell: str, t_ns: int, fields: Mapping[str, str], metrics: Mapping[str, MetricRule]
) -> dict[str, float]:
    numbers = {name: as_float(text) for name, text in fields.items()}
    made = {name: value(name, rule, cell, t_ns, numbers) for name, rule in metrics.items()}
    return {name: found for name, found in made.items() if not isinstance(found, Missing)}


def measured_block(
    stage: JudgeStage,
    block: int,
    values: Values,
    champion_first: Mapping[str, bool],
) -> MeasuredBlock:
    """Return the block whose arms have these values in every cell that was drawn.

    Raises:
        KeyError: an arm has no value in a cell, so the block does not count; a bug of ours.
    """
    ratios: dict[str, dict[str, float]] = {}
    for cell in champion_first:
        ours, theirs = values[cell, "candidate"], values[cell, "champion"]
        for name, found in ours.items():
            # A difference of logarithms: the ratio itself could leave the range of a float.
            ratios.setdefault(name, {})[cell] = math.log(found) - math.log(theirs[name])
    return MeasuredBlock(
        stage=stage, block=block, ln_ratio=ratios, champion_first=dict(champion_first)
    )
