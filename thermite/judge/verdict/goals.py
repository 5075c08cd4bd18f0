"""Which verifier or threshold of a goal campaign comes next, and what its goals are told.

One candidate is verified in two passes: the visible one without the held-out cells, the hidden
one with them alone. What was measured comes in as the reasons of the cells that failed; no
order depends on anything else, so that a restart goes on where the last one stopped.
Source: the reference page "Kit manifest", Verifiers; kit requirements K-060 to K-065, D41 to
D46.
"""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from thermite.judge.verdict.reason import (
    GOAL_BUDGET,
    RUN_BUDGET,
    VERDICT_BUDGET,
    join,
    joined_reasons,
    shorten,
)
from thermite.schema.contract import CodeGoal, Goal, ThresholdGoal
from thermite.schema.kit import Verifier

THRESHOLD_PRIORITY: Final = 100
"""A threshold goal's place among verifiers: a verifier's own default (D41)."""

Pass: TypeAlias = Literal["visible", "hidden"]


class Task(NamedTuple):
    """What is verified at once: a verifier by its name, or a threshold by its goal's id."""

    kind: Literal["code", "metric_threshold"]
    name: str


class Next(NamedTuple):
    """The task to run now, and its cells in the order in which they run, all of them (D44)."""

    task: Task
    cells: list[str]


class Decided(NamedTuple):
    """What came of a task; met is None when it has no cell in this pass (D45)."""

    met: bool | None
    reasons: list[str]


@dataclass(frozen=True)
class Course:
    """One pass over a candidate's goals.

    goals: the contract's, in its order; verifiers: the kit's; held_out: the contract's
    held-out cells; cells: those that the kit has.
    """

    goals: Sequence[Goal]
    verifiers: Mapping[str, Verifier]
    held_out: Sequence[str]
    cells: Collection[str]
    which: Pass

    def walk(self) -> Generator[Next, Sequence[str], dict[Task, Decided]]:
        """Yield what is run next; it is sent one reason for each cell that failed."""
        decided: dict[Task, Decided] = {}
        waiting = [] if self._lacking() else sorted(self._tasks(), key=self._place)
        while waiting:
            task = next(one for one in waiting if self._gates(one) <= decided.keys())
            waiting.remove(task)
            cells = self._cells(task)
            closed = [
                gate for gate in self._requires(task) if decided[Task("code", gate)].met is False
            ]
            if not cells:
                decided[task] = Decided(met=None, reasons=[])
            elif closed:
                decided[task] = Decided(met=False, reasons=[not_run(closed)])
            else:
                failed = yield Next(task, cells)
                decided[task] = Decided(met=not failed, reasons=goal_reasons(failed))
        return decided

    def reports(self, decided: Mapping[Task, Decided]) -> list[tuple[str, Decided]]:
        """Return the goals by their ids with what came of each, in the contract's order.

        Review goals are none of the judge's, and are left out.

        Args:
            decided: what the walk returned.
        """
        lacking = self._lacking()
        found = []
        for goal in self.goals:
            task = _task_of(goal)
            if task is not None:
                found.append(
                    (goal.id, Decided(met=False, reasons=lacking) if lacking else decided[task])
                )
        return found

    def threshold(self, task: Task) -> ThresholdGoal:
        """Return the threshold that a task is about.

        Raises:
            TypeError: it is a verifier; a bug of ours.
        """
        found = next(goal.verify for goal in self.goals if goal.id == task.name)
        if not isinstance(found, ThresholdGoal):
            raise TypeError(f"goal {task.name} is no threshold")
        return found

    def _lacking(self) -> list[str]:
        """Return why no goal can be met in the hidden pass: held-out cells that are not there."""
        if self.which == "visible":
            return []
        return [
            f"no cell {cell}" for cell in dict.fromkeys(self.held_out) if cell not in self.cells
        ]

    def _tasks(self) -> set[Task]:
        """Return what goals name, and the gates before it, named or not (D42)."""
        waiting = [task for goal in self.goals if (task := _task_of(goal)) is not None]
        found: set[Task] = set()
        while waiting:
            task = waiting.pop()
            if task not in found:
                found.add(task)
                waiting += self._gates(task)
        return found

    def _gates(self, task: Task) -> set[Task]:
        return {Task("code", name) for name in self._requires(task)}

    def _requires(self, task: Task) -> list[str]:
        return self.verifiers[task.name].requires if task.kind == "code" else []

    def _cells(self, task: Task) -> list[str]:
        """Return a task's cells in this pass, each once, in their order."""
        if task.kind == "code":
            cells = self.verifiers[task.name].cells
        else:
            cells = self.threshold(task).cells
        hidden = self.which == "hidden"
        return [cell for cell in dict.fromkeys(cells) if (cell in self.held_out) is hidden]

    def _place(self, task: Task) -> tuple[int, int, str]:
        """Return a task's place among the ready ones (D41)."""
        naming = (at for at, goal in enumerate(self.goals) if _task_of(goal) == task)
        priority = self.verifiers[task.name].priority if task.kind == "code" else THRESHOLD_PRIORITY
        return priority, next(naming, len(self.goals)), task.name


def not_run(gates: Sequence[str]) -> str:
    """Return why a verifier ran none of its cells; gates: those that did not pass (D43)."""
    return f"not run: it requires {', '.join(gates)}, which did not pass"


def goal_reasons(failed: Sequence[str]) -> list[str]:
    """Return a goal's reasons for its check: one for each failed cell, within its budget."""
    return joined_reasons([shorten(one, RUN_BUDGET) for one in failed], VERDICT_BUDGET)


def told(reasons: Sequence[str]) -> str:
    """Return a goal's reasons as the goal report has them that workers and the planner get."""
    return join(reasons, GOAL_BUDGET)


def _task_of(goal: Goal) -> Task | None:
    match goal.verify:
        case CodeGoal(verifier=name):
            return Task("code", name)
        case ThresholdGoal():
            return Task("metric_threshold", goal.id)
        case _:
            return None
