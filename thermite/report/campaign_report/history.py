"""What one campaign came to, gathered from its events and the state that they mean.

Source: judging, 3.9 (gains, the re-anchor) and 3.11 (champion times over the campaign).
"""

import math
from collections import defaultdict
from statistics import median
from typing import Final

from thermite.campaign.state import Assignment, State
from thermite.report import goal
from thermite.report.campaign import Row, headline, isolation_sentence, no_held_out_warning, rows
from thermite.report.campaign import verdict_counts as counts
from thermite.schema import event as e
from thermite.schema.strict import Strict

_NS_PER_MS: Final = 1e6
_NS_PER_S: Final = 1e9


class Point(Strict):
    """One attempt on the champion's way.

    gain, interval: of the attempt over the champion of its time, fractions; total: the gain of
    the champion after it over the starting commit, the promoted gains multiplied up.
    """

    attempt: int
    name: str
    verdict: str
    gain: float | None
    interval: e.Interval | None
    total: float


class Change(Strict):
    """A promotion: which commit took whose place, by how much, and in which files."""

    attempt: int
    name: str
    commit: str
    previous: str
    gain: float
    interval: e.Interval
    marks: list[str]
    files: list[str]


class Case(Strict):
    """One cell in the last re-anchor: medians of the runs, ms, and of the blocks' gain."""

    cell: str
    held_out: bool
    start_ms: float | None
    champion_ms: float | None
    gain: float


class Times(Strict):
    """How long the champion ran on one cell beside one attempt: median, ms."""

    attempt: int
    cell: str
    ms: float


class History(Strict):
    """One campaign, whole; judge_s: seconds of all runs; begun, ended: RFC 3339."""

    assignment: str
    name: str
    kind: str
    status: str
    end_reason: str | None
    project: str
    kit: str | None
    target: str | None
    champion: str
    gain: float | None
    interval: e.Interval | None
    min_effect: float | None
    headline: str
    isolation: str
    grade: str | None
    sees: float | None
    notes: list[str]
    begun: str | None
    ended: str | None
    judge_s: float
    blocks: int
    verdicts: dict[str, int]
    attempts: list[Row]
    points: list[Point]
    changes: list[Change]
    cases: list[Case]
    champion_times: list[Times]
    goals: list[str]


class Gathered:
    """What the events of one campaign hold beyond the state: times of runs, counted blocks."""

    def __init__(self) -> None:
        self.begun: str | None = None
        self.ended: str | None = None
        self.run_ns = 0
        self.blocks = 0
        self.champion_ns: dict[tuple[int, str], list[int]] = defaultdict(list)
        self.anchor_ns: dict[tuple[str, str], list[int]] = defaultdict(list)
        self.anchor_d: dict[str, list[float]] = defaultdict(list)
        self._anchor = 0

    def take(self, event: e.Event) -> None:
        """Take in one event of the campaign."""
        self.begun = self.begun or event.at
        self.ended = event.at
        data = event.data
        if isinstance(data, e.Block) and data.dropped is None:
            self._take_block(data)
        elif isinstance(data, e.Run) and data.record is not None:
            self._take_run(data, data.record.t_ns)

    def _take_block(self, block: e.Block) -> None:
        self.blocks += 1
        if block.stage == "re_anchor":
            self._turn_to_anchor(block.tries)
            for cell, ratio in block.d.items():
                self.anchor_d[cell].append(ratio)

    def _turn_to_anchor(self, number: int) -> None:
        """Forget the one before: only the newest says where the champion stands."""
        if number != self._anchor:
            self._anchor = number
            self.anchor_ns.clear()
            self.anchor_d.clear()

    def _take_run(self, run: e.Run, t_ns: int) -> None:
        self.run_ns += t_ns
        if run.block is None or run.outcome != "ok":
            return
        if run.stage == "re_anchor":
            self._turn_to_anchor(run.tries)
            self.anchor_ns[run.arm, run.cell].append(t_ns)
        elif run.arm == "champion" and run.attempt is not None:
            self.champion_ns[run.attempt, run.cell].append(t_ns)


def history(state: State, assignment: Assignment, found: Gathered) -> History:
    """Return the whole history of one campaign."""
    contract, opened, selftest = assignment.contract, state.opened, state.selftest
    warning = no_held_out_warning(assignment) if assignment.kit is not None else None
    objective = contract.objective
    return History(
        assignment=assignment.id,
        name=contract.name,
        kind=contract.campaign,
        status=assignment.status,
        end_reason=assignment.end_reason,
        project=f"{assignment.project.repo} {assignment.project.commit}",
        kit=None if assignment.kit is None else f"{assignment.kit.repo} {assignment.kit.commit}",
        target=None if opened is None else opened.target,
        champion=assignment.champion,
        gain=assignment.gain,
        interval=assignment.interval,
        min_effect=None if objective is None else objective.min_effect,
        headline=headline(assignment),
        isolation=isolation_sentence(state),
        grade=None if selftest is None else selftest.grade,
        sees=state.sees,
        notes=[warning] if warning else [],
        begun=found.begun,
        ended=found.ended,
        judge_s=round(found.run_ns / _NS_PER_S, 3),
        blocks=found.blocks,
        verdicts=counts(assignment),
        attempts=rows(assignment),
        points=_points(assignment),
        changes=_changes(assignment),
        cases=_cases(assignment, found),
        champion_times=[
            Times(attempt=attempt, cell=cell, ms=median(ns) / _NS_PER_MS)
            for (attempt, cell), ns in found.champion_ns.items()
        ],
        goals=goal.lines(assignment),
    )


def _points(assignment: Assignment) -> list[Point]:
    promoted = {one.attempt: one.gain for one in assignment.promotions}
    total, points = 1.0, []
    for row in rows(assignment):
        total *= 1 + promoted.get(row.attempt, 0.0)
        points.append(
            Point(
                attempt=row.attempt,
                name=row.name,
                verdict=row.verdict,
                gain=row.gain,
                interval=row.interval,
                total=total - 1,
            )
        )
    return points


def _changes(assignment: Assignment) -> list[Change]:
    changes = []
    for one in assignment.promotions:
        attempt = assignment.attempts[one.attempt]
        changes.append(
            Change(
                attempt=one.attempt,
                name=attempt.started.proposal or f"attempt {one.attempt}",
                commit=one.commit,
                previous=one.previous,
                gain=one.gain,
                interval=one.interval,
                marks=list(one.marks),
                files=list(attempt.paths),
            )
        )
    return changes


def _cases(assignment: Assignment, found: Gathered) -> list[Case]:
    held_out = set(assignment.contract.held_out_cells)
    cases = []
    if assignment.gain is None:  # what was cut short is no figure
        return []
    for cell, ratios in found.anchor_d.items():
        # In a re-anchor the start stands in the champion's place.
        start, now = (found.anchor_ns[one, cell] for one in ("champion", "candidate"))
        cases.append(
            Case(
                cell=cell,
                held_out=cell in held_out,
                start_ms=median(start) / _NS_PER_MS if start else None,
                champion_ms=median(now) / _NS_PER_MS if now else None,
                gain=math.exp(median(ratios)) - 1,
            )
        )
    return cases
