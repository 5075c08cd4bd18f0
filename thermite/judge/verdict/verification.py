"""One pass over a candidate's goals, run by run: which run is due, and what all of them mean.

The walk yields the run that is due and is sent what became of it; a job sends fresh runs, a
restart and an audit send those of the ledger, and all three come to the same end.
"""

from collections.abc import Generator, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from thermite.judge.verdict.goals import Course, Decided, Task
from thermite.judge.verdict.threshold import Reached, reached
from thermite.schema.contract import ThresholdGoal
from thermite.schema.rule import GoalRun, MetricRule

Reports: TypeAlias = list[tuple[str, Decided]]
"""Goals by their ids, in the contract's order, with what came of each."""


class Due(NamedTuple):
    """A run that is due: its cell, and its number there, None for a warm-up; for which task."""

    cell: str
    block: int | None
    task: Task


def verification(
    course: Course, metrics: Mapping[str, MetricRule], warmups: int
) -> Generator[Due, GoalRun, Reports]:
    """Yield each run that is due and return the goals' outcomes.

    Args:
        metrics: of the thresholds.
        warmups: runs of a threshold's cell before the first that counts.
    """
    walk = course.walk()
    try:
        step = next(walk)
        while True:
            reasons = []
            for cell in step.cells:
                if step.task.kind == "code":
                    failed = (yield Due(cell, 0, step.task)).failure
                else:
                    failed = yield from _measured(course, step.task, cell, metrics, warmups)
                reasons += [failed] if failed is not None else []
            step = walk.send(reasons)
    except StopIteration as over:
        return course.reports(over.value)


def _measured(
    course: Course, task: Task, cell: str, metrics: Mapping[str, MetricRule], warmups: int
) -> Generator[Due, GoalRun, str | None]:
    """Yield the runs of a threshold in one cell and return why it is not reached, or None."""
    goal = course.threshold(task)
    for _ in range(warmups):
        failed = (yield Due(cell, None, task)).failure
        if failed is not None:
            return failed
    values: list[float] = []
    answer: Reached | None = None
    runs = 0
    while answer is None:
        ran = yield Due(cell, runs, task)
        if ran.failure is not None:
            return ran.failure
        runs += 1
        values += [] if ran.disturbed else [ran.values[goal.metric]]
        answer = reached(values, goal, runs=runs, exact=_is_exact(goal, metrics))
    return answer.said


def _is_exact(goal: ThresholdGoal, metrics: Mapping[str, MetricRule]) -> bool:
    return metrics[goal.metric].kind == "check"


def replayed(walk: Generator[Due, GoalRun, Reports], runs: Iterable[GoalRun]) -> Due | Reports:
    """Send recorded runs into a fresh walk; return the run that is due then, or the outcomes.

    Raises:
        ValueError: the runs are not those that the goals ask for.
    """
    left = iter(runs)
    try:
        due = next(walk)
        for ran in left:
            if (ran.cell, ran.block) != (due.cell, due.block):
                raise ValueError(f"run {_named(ran)}, where run {_named(due)} is due")
            due = walk.send(ran)
    except StopIteration as over:
        extra = next(left, None)
        if extra is not None:
            raise ValueError(f"run {_named(extra)}, where all is decided") from None
        reports: Reports = over.value
        return reports
    return due


def sent(walk: Generator[Due, GoalRun, Reports], ran: GoalRun) -> Due | Reports:
    """Send a run that was due; return the run that is due then, or the outcomes."""
    try:
        return walk.send(ran)
    except StopIteration as over:
        reports: Reports = over.value
        return reports


def _named(run: Due | GoalRun) -> str:
    number = "of the warm-up" if run.block is None else str(run.block)
    return f"{number} in cell {run.cell}"
