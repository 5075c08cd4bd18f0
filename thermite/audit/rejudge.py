"""Judge a ledger again from its runs and checks alone; nothing is run and nothing is written.

Every block, decision, verdict, index of the error budget, coin, goal and champion is made
again, in order, and held against what was recorded. Another rule can be tried on the same
blocks. Source: the design page on judging, 3.8.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from thermite.audit.bounds import SAME, is_same, is_same_interval
from thermite.audit.changes import changed
from thermite.audit.one_try import Try
from thermite.campaign import by_kind
from thermite.campaign.fold import fold
from thermite.campaign.state import Assignment, State
from thermite.errors import InfrastructureError, UsageError
from thermite.judge.measure.goal_run import goal_runs
from thermite.judge.verdict.coin import commitment, draw_order
from thermite.judge.verdict.goals import Course, Pass
from thermite.judge.verdict.params import alpha_k
from thermite.judge.verdict.rule import stage_cells
from thermite.judge.verdict.verification import Due, replayed, verification
from thermite.ledger.replay import checked, decoded
from thermite.schema import event as e
from thermite.schema.rejudged import Difference, Otherwise, Rejudged
from thermite.schema.rule import RuleParameters
from thermite.schema.verdict import Arm, JudgeStage

MOST_LISTED = 1000
"""Differences that are listed; the rest are counted."""
MEASURED = frozenset(
    {
        "promoted",
        "not_better",
        "regressed",
        "not_confirmed",
        "overfit",
        "guard_failed",
        "constraint_failed",
        "invalid",
        "crash_candidate",
    }
)
"""Verdicts that follow from the runs of a try whose screening has begun."""


Judging: TypeAlias = e.JudgeStarted | e.Run | e.Check | e.Block | e.Decision | e.Verdict
STRANGE: Final = (
    ArithmeticError,
    LookupError,
    ValueError,
    TypeError,
    InfrastructureError,
    msgspec.MsgspecError,
)
"""What a stranger's numbers can end in: a difference, never a traceback."""
STAGES: Final[tuple[JudgeStage, ...]] = ("screen", "confirm")


def rejudge(path: Path, changes: Mapping[str, object] | None = None) -> Rejudged:
    """Return what judging a ledger again finds.

    Args:
        changes: parameters of another rule by their names in a contract, such as
            `objective.min_effect`; what it would have decided comes beside.

    Raises:
        LedgerError: the ledger can't be read.
        UsageError: a change names no parameter of the rule, or a value that it can't have.
    """
    with _uncollected():
        return rejudged(((row.seq, decoded(row)) for row in checked(path)), changes)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Look for no cycles meanwhile: events have none, and among so many that costs a third."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def rejudged(
    events: Iterable[tuple[int, e.Event]], changes: Mapping[str, object] | None = None
) -> Rejudged:
    """Return what judging events again finds; from event 1 on, each with its number.

    Raises:
        UsageError: as `rejudge`.
    """
    walk = _Walk(dict(changes or {}))
    for seq, event in events:
        walk.take(seq, event)
    return walk.result()


class _Walk:
    """One re-judging under way; tries are kept by assignment, attempt and number."""

    def __init__(self, changes: dict[str, object]) -> None:
        self.changes = changes
        self.counts: Counter[str] = Counter()
        self.differences: list[Difference] = []
        self.otherwise: list[Otherwise] = []
        self.state = State()
        self._tries: dict[tuple[str, int | None, int], Try] = {}
        self._params: dict[str, RuleParameters] = {}
        self._commitments: dict[str, str] = {}
        self._orders: dict[str, list[tuple[int, int, e.Block, list[tuple[str, Arm]]]]] = {}
        # A table, not a chain of questions: most of a ledger's events are runs and checks.
        self._holding: dict[type, Callable[[int, Assignment, Any], None]] = {
            e.JudgeStarted: self._started,
            e.Run: self._fact,
            e.Check: self._fact,
            e.Block: self._block,
            e.Decision: self._decision,
            e.Verdict: self._verdict,
            e.ChampionPromoted: self._promotion,
            e.AssignmentEnded: self._ended,
        }

    def result(self) -> Rejudged:
        """Return what was found."""
        return Rejudged(**self.counts, differences=self.differences, otherwise=self.otherwise)

    def take(self, seq: int, event: e.Event) -> None:
        """Hold one event against what came before it."""
        if type(event.data) in {e.AssignmentCreated, e.LocalJob}:
            self._commitments[event.assignment or ""] = event.data.order_commitment
        assignment = self.state.assignments.get(event.assignment or "")
        if assignment is not None:
            try:
                self._about(seq, assignment, event.data)
            except STRANGE as error:
                attempt = getattr(event.data, "attempt", None)
                self._differ(seq, "event", attempt, e.TAG_OF[type(event.data)], str(error)[:500])
        fold(self.state, seq, event)

    def _about(self, seq: int, assignment: Assignment, data: object) -> None:
        hold_against = self._holding.get(type(data))
        if hold_against is not None:
            hold_against(seq, assignment, data)

    def _try(self, assignment: Assignment, data: Judging) -> Try:
        key = (assignment.id, data.attempt, data.tries)
        if key not in self._tries:
            again = data.attempt is None  # a re-anchor has no parameters of its own
            p = self._params.get(assignment.id) if again else None
            self._tries[key] = Try(p, data.tries if again else 0)
        return self._tries[key]

    def _started(self, seq: int, assignment: Assignment, data: e.JudgeStarted) -> None:
        one = self._try(assignment, data)
        one.p, one.k = msgspec.convert(data.params, RuleParameters), data.k
        self._params[assignment.id] = one.p
        want = assignment.used_k + 1
        if data.k != want:
            self._differ(seq, "index", data.attempt, f"k {data.k}", f"k {want}")
        alpha = alpha_k(one.p.judging, data.k)
        if abs(alpha - data.alpha_k) > SAME * alpha:
            self._differ(seq, "alpha", data.attempt, f"{data.alpha_k:g}", f"{alpha:g}")

    def _fact(self, seq: int, assignment: Assignment, data: e.Run | e.Check) -> None:
        if data.stage == "selftest":
            return
        wrong = self._try(assignment, data).take(data)
        self.counts["runs"] += type(data) is e.Run
        if wrong is not None and isinstance(data, e.Run):
            was = ", ".join(data.flags) or "undisturbed"
            self._differ(seq, "run", data.attempt, was, wrong)

    def _block(self, seq: int, assignment: Assignment, data: e.Block) -> None:
        one = self._try(assignment, data)
        if one.p is None:
            return
        self.counts["blocks"] += 1
        wrong = one.count(data, one.p)
        if wrong is not None:
            was = f"dropped: {data.dropped}" if data.dropped else f"D {data.D}"
            self._differ(seq, "block", data.attempt, f"block {data.block}, {was}", wrong)
        runs = [run for run in one.own(data) if isinstance(run, e.Run)]
        order = [(run.cell, run.arm) for run in sorted(runs, key=_position)]
        self._orders.setdefault(assignment.id, []).append((seq, one.k, data, order))

    def _decision(self, seq: int, assignment: Assignment, data: e.Decision) -> None:
        one = self._try(assignment, data)
        if one.p is None:
            return
        self.counts["decisions"] += 1
        wrong = one.check(data, one.p)
        if wrong is not None:
            result = f", {data.result}" if data.result else ""
            was = f"{data.action}{result}, n {data.n}, ln E {data.lnE:.7f}, T {data.T:.7f}"
            self._differ(seq, "decision", data.attempt, was, wrong)

    def _verdict(self, seq: int, assignment: Assignment, data: e.Verdict) -> None:
        one = self._try(assignment, data)
        self.counts["verdicts"] += 1
        self._hold_verdict(seq, assignment, data, one)
        one.forget()

    def _hold_verdict(self, seq: int, assignment: Assignment, data: e.Verdict, one: Try) -> None:
        if data.verdict in ("goals_met", "goals_unmet"):
            self._goals(seq, assignment, data, one)
            return
        if one.p is None or data.verdict not in MEASURED:
            return
        kind = self._expected(assignment, data, one)
        if kind != data.verdict:
            self._differ(seq, "verdict", data.attempt, data.verdict, kind or "none yet")
        elif data.gain is not None and (one.gain is None or abs(one.gain - data.gain) > SAME):
            self._differ(seq, "gain", data.attempt, f"{data.gain:.7f}", f"{one.gain or 0:.7f}")
        elif data.gain is not None and not is_same_interval(data.interval, one.interval):
            self._differ(seq, "interval", data.attempt, f"{data.interval}", f"{one.interval}")
        if self.changes:
            self._otherwise(assignment, data, one)

    def _expected(self, assignment: Assignment, data: e.Verdict, one: Try) -> str | None:
        """Return the verdict of a try; a hold ends as a person or the time resolved it."""
        kind = one.kind()
        if one.last is not None and one.last.action == "hold" and kind == one.last.result:
            attempt = assignment.attempts.get(data.attempt)
            released = attempt is not None and attempt.released
            return "promoted" if released else "not_confirmed"
        return kind

    def _promotion(self, seq: int, assignment: Assignment, data: e.ChampionPromoted) -> None:
        if data.previous != assignment.champion:
            self._differ(seq, "champion", data.attempt, data.previous, assignment.champion)
        attempt = assignment.attempts.get(data.attempt)
        said = None if attempt is None else attempt.verdict
        told = ("promoted", data.gain, data.interval)
        if said is None or (said.verdict, said.gain, said.interval) != told:
            verdict = "no verdict"
            if said is not None:
                verdict = f"{said.verdict} {said.gain} {said.interval}"
            self._differ(
                seq, "champion", data.attempt, f"promoted {data.gain} {data.interval}", verdict
            )

    def _goals(self, seq: int, assignment: Assignment, data: e.Verdict, one: Try) -> None:
        rules, contract = assignment.goals, assignment.contract
        attempt = assignment.attempts.get(data.attempt)
        if rules is None or attempt is None:
            return
        passes: list[Pass] = ["visible"]
        if contract.held_out_cells:
            passes.append("hidden")
        for which in passes:
            course = Course(
                contract.goals, rules.verifiers, contract.held_out_cells, rules.held_out, which
            )
            walk = verification(course, rules.metrics, contract.judging.warmup_runs)
            try:
                found = replayed(walk, goal_runs(one.facts, which, rules.metrics))
            except ValueError as error:
                self._differ(seq, "goals", data.attempt, f"{which} pass", str(error))
                continue
            if isinstance(found, Due):
                due = f"a run in cell {found.cell} is due"
                self._differ(seq, "goals", data.attempt, f"{which} pass ended", due)
                continue
            for goal, decided in found:
                self.counts["goals"] += 1
                was = attempt.checked.get((goal, which))
                if (None if was is None else was.met) is not decided.met:
                    said = "not checked" if was is None else f"met: {was.met}"
                    self._differ(seq, f"goal {goal}", data.attempt, said, f"met: {decided.met}")

    def _ended(self, seq: int, assignment: Assignment, data: e.AssignmentEnded) -> None:
        seed = bytes.fromhex(data.order_seed)
        self.counts["coins"] += 1
        said = self._commitments.get(assignment.id)
        if said is not None and commitment(seed).hex() != said:
            self._differ(seq, "coin", None, said, commitment(seed).hex())
        self._hold_end(seq, data, by_kind.the_end(assignment, data.reason, seed))
        p = self._params.get(assignment.id)
        for at, k, block, order in self._orders.pop(assignment.id, []):
            if p is None or not order:
                continue
            turns = draw_order(seed, k, block.stage, block.block, stage_cells(block.stage, p))
            drawn = [(turn.cell, arm) for turn in turns for arm in turn.arms]
            if order != drawn[: len(order)]:
                self._differ(at, "order", block.attempt, _told(order), _told(drawn))

    def _hold_end(self, seq: int, data: e.AssignmentEnded, made: e.AssignmentEnded) -> None:
        same = is_same(data.gain, made.gain) and is_same_interval(data.interval, made.interval)
        if data.champion != made.champion or not same:
            told, found = (f"{one.champion} {one.gain} {one.interval}" for one in (data, made))
            self._differ(seq, "end", None, told, found)

    def _otherwise(self, assignment: Assignment, data: e.Verdict, one: Try) -> None:
        if one.p is None:
            return
        try:
            kind = _under(one, changed(one.p, self.changes))
        except STRANGE as error:  # the recorded rule came to its verdict on these blocks
            names = ", ".join(self.changes)
            raise UsageError(f"this rule comes to no verdict: {names}: {error}") from None
        if kind != data.verdict:
            self.otherwise.append(
                Otherwise(
                    assignment=assignment.id,
                    attempt=data.attempt,
                    recorded=data.verdict,
                    otherwise=kind,
                )
            )

    def _differ(self, seq: int, what: str, attempt: int | None, was: str, recomputed: str) -> None:
        if len(self.differences) >= MOST_LISTED:
            self.counts["unlisted"] += 1
            return
        self.differences.append(
            Difference(seq=seq, what=what, attempt=attempt, recorded=was, recomputed=recomputed)
        )


def _under(one: Try, p: RuleParameters) -> str:
    """Return the verdict that a rule gives on the blocks of a try, or that they are too few."""
    failed = one.kind()
    if one.last is None or failed != one.last.result:
        return failed or "nothing was decided"
    other = Try(p, one.k)
    for stage in STAGES:
        for block in one.counted.get(stage, []):
            other.counted.setdefault(stage, []).append(block)
            ruling = other.decide(stage, p)
            if ruling is None or ruling.action == "continue":
                continue
            if stage == "screen" and ruling.action == "pass":
                break
            return ruling.result or ruling.action
        else:
            return f"undecided: more blocks of {stage} were needed"
    return "undecided"


def _position(run: e.Run) -> int:
    return run.position


def _told(order: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{cell} {arm}" for cell, arm in order)
