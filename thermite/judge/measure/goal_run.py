"""A run as the rule of goals sees it: failed or not, its values, disturbed or not.

Works on the facts as the ledger holds them, so that an audit sees the same runs. Source: the
design page on judging, 3.9.
"""

from collections.abc import Iterable, Iterator, Mapping

from thermite.judge.measure.block import paired, values
from thermite.schema.rule import GoalRun, MetricRule
from thermite.schema.strict import Strict
from thermite.schema.verdict import JudgeStage


def goal_runs(
    facts: Iterable[Strict], stage: JudgeStage, metrics: Mapping[str, MetricRule]
) -> Iterator[GoalRun]:
    """Yield the runs of one pass, in order.

    Args:
        metrics: that thresholds name; a run has the values of those that are measured in its
            cell.

    Raises:
        InfrastructureError: the kit's work parameter is no number above zero.
    """
    for run, check in paired(facts):
        if run.stage != stage:
            continue
        here = {
            name: rule
            for name, rule in metrics.items()
            if rule.kind != "rate" or run.cell in rule.work
        }
        yield GoalRun(
            cell=run.cell,
            block=run.block,
            failure=None if run.outcome == "ok" else run.reason or run.outcome,
            values=values(run, check, here),
            disturbed=bool(run.flags),
        )
