"""One lane: attempt after attempt, from a proposal to a verdict, until nothing is left to do.

What to do next is read from the book each time, so a restart goes on where the ledger ends:
an attempt whose agent was running is ended as killed, with what it had said and spent by then,
and its proposal is offered again; one that was being judged goes back to the judge with what is
known of it.
"""

import hashlib
import threading
from pathlib import Path
from typing import Final

from thermite.agent.brief import brief
from thermite.campaign import attempts, by_kind, hill_climb, limits, research
from thermite.campaign.state import Assignment, Attempt
from thermite.errors import InfrastructureError
from thermite.harness.blobs import keep_blob
from thermite.harness.book import Book, Draft
from thermite.harness.candidate import Candidate, Refused
from thermite.harness.judge_job import Turn
from thermite.harness.meter import Meter, read_meter
from thermite.harness.proposer import AgentStatus, Backend, Task, Work
from thermite.judge.verdict import reason
from thermite.rig.output_log import read_log
from thermite.schema import event as e
from thermite.schema.event import Verdict
from thermite.schema.ids import Sha256
from thermite.schema.job import Held
from thermite.schema.strict import Strict

MOST_PATHS: Final = 100
"""Changed paths that an event names (our figure)."""
MOST_PATH: Final = 400
"""Characters of one of them: all together stay far below an event's 256 KiB."""
PAUSE_S: Final = 1.0
"""How often a waiting lane looks again without being told (our figure)."""


class Lane:
    """A lane of one assignment; `run` returns when no further attempt starts."""

    def __init__(
        self, number: int, turn: Turn, backend: Backend, blobs: Path, stopping: threading.Event
    ) -> None:
        self.number, self.turn, self.backend = number, turn, backend
        self.book: Book = turn.bench.book
        self.blobs, self.stopping = blobs, stopping

    def run(self) -> None:
        """Work until the campaign's end, the backend's end, or the harness's stop."""
        self._end_interrupted()
        self._forget_log()
        while not self.stopping.is_set() and self._step():
            pass

    def finish(self) -> None:
        """Take an attempt that is still open to its end, and start none."""
        attempt = self.assignment.open_attempt(self.number)
        while attempt is not None and not self.stopping.is_set():
            self._judge(attempt.started.attempt)
            attempt = self.assignment.open_attempt(self.number)

    def _step(self) -> bool:
        """Do one thing and return whether there may be more."""
        attempt = self.assignment.open_attempt(self.number)
        if attempt is not None:
            self._judge(attempt.started.attempt)
            return True
        if by_kind.end_reason(self.assignment) is not None:
            return False
        if self.assignment.status == "paused":
            with self.book.changed:
                self.book.changed.wait(PAUSE_S)
            return True
        return self._attempt()

    @property
    def assignment(self) -> Assignment:
        """The assignment as the book has it now."""
        return self.turn.assignment

    def _append(self, *payloads: Strict) -> None:
        drafts = [Draft(p, assignment=self.turn.id, lane=self.number) for p in payloads]
        self.book.append(*drafts)

    def _end_interrupted(self) -> None:
        attempt = self.assignment.open_attempt(self.number)
        if attempt is not None and attempt.status in ("working", "finished"):
            self._append(*interrupted(self.blobs, self.turn.id, attempt))

    def _forget_log(self) -> None:
        """Remove the last attempt's log: what was to be known of it is an event by now."""
        own = [n for n, a in self.assignment.attempts.items() if a.lane == self.number]
        if own:
            log_of(self.blobs, self.turn.id, max(own)).unlink(missing_ok=True)

    def _attempt(self) -> bool:
        """Start an attempt and submit what came of it; False when the backend has nothing.

        Raises:
            InfrastructureError: the rig could not make the candidate. The attempt has ended and
                its proposal counts as not offered: a harness that dies before the campaign's
                end offers it again, and fails again, rather than pass over it in silence.
        """
        proposal = self.backend.next_proposal(self.assignment)
        if proposal is None:
            return False
        task = self._start(proposal)
        if task is None:
            return True
        attempt = self.assignment.attempts[task.number]
        meter = Meter(meter_of(self.blobs, self.turn.id, attempt))
        try:
            with meter.running():
                work = self.backend.work(self.assignment, task)
        except InfrastructureError as error:
            self._append(*_killed(self.blobs, self.turn.id, attempt, told(str(error))))
            meter.forget()
            raise
        self._submit(task.number, work, meter.spent_s)
        meter.forget()
        log_of(self.blobs, self.turn.id, task.number).unlink(missing_ok=True)
        return True

    def _start(self, proposal: str) -> Task | None:
        """Start an attempt; None: look again.

        A hold was resolved meanwhile and that attempt goes first, or the budget is spent.
        """
        with self.book.lock:
            if self.assignment.open_attempt(self.number) is not None:
                return None
            if by_kind.end_reason(self.assignment) is not None:
                return None  # another lane took the last attempt, or spent the rest
            task = Task(
                number=len(self.assignment.attempts) + 1,
                base=by_kind.base(self.assignment),
                proposal=proposal,
                brief=brief(self.assignment, self.number),
                log=log_of(self.blobs, self.turn.id, len(self.assignment.attempts) + 1),
            )
            self._append(
                e.AttemptStarted(
                    attempt=task.number,
                    base=task.base,
                    proposal=proposal or None,
                    brief_sha256=hashlib.sha256(task.brief.encode()).hexdigest(),
                    limits={},
                )
            )
        return task

    def _submit(self, number: int, work: Work, wall_s: float) -> None:
        spent = e.BudgetSpent(
            attempt=number, agent="workers", amounts={"attempts": 1.0, "wall_s": wall_s}
        )
        stop = None if work.stop is None else told(work.stop)
        finished = _finished(number, work.status, stop, _kept(self.blobs, work.transcript))
        made = work.made
        if isinstance(made, Candidate):
            submitted = e.CandidateSubmitted(
                attempt=number, commit=made.commit, tree=made.tree, paths=_shown(made.paths)
            )
            self._append(finished, spent, submitted)
        elif isinstance(made, Refused):
            refused = e.CandidateRefused(
                attempt=number, reason=told(made.reason), paths=_shown(made.paths)
            )
            ended = e.AttemptEnded(attempt=number, result="refused")
            self._append(finished, spent, refused, ended)
        else:
            result = "no_change" if work.status == "ok" else work.status
            self._append(finished, spent, e.AttemptEnded(attempt=number, result=result))

    def _judge(self, number: int) -> None:
        attempt = self.assignment.attempts[number]
        meter = Meter(meter_of(self.blobs, self.turn.id, attempt))
        answer: Verdict | Held | None = self._known_answer(attempt)
        if answer is None and self.assignment.contract.campaign == "research":
            self._append(*research.after_submission(self.assignment, attempt))
            return
        spends = answer is None and not attempt.released  # a released one was measured already
        left_s = limits.left(self.assignment, "judge_s") if spends else None
        if left_s is not None and left_s <= meter.carried_s:
            said = "the campaign's budget of judge_s was spent before this was judged"
            self._cut(attempt, said, meter)
            return

        def follow(answer: Verdict | Held) -> None:
            self._follow(attempt, answer, meter.spent_s)

        with meter.running():
            if answer is not None:
                follow(answer)
            else:
                answer = self.turn.judge(number, follow)
        if answer is None:
            self._cancel(attempt, meter)
        else:
            meter.forget()

    def _follow(self, attempt: Attempt, answer: Verdict | Held, judge_s: float) -> None:
        """Append an answer with what follows from it and what it has cost."""
        spent = _judged(attempt.started.attempt, judge_s)
        if isinstance(answer, Held):
            self._append(spent, hill_climb.hold(answer))
            return
        with self.book.lock:
            self._append(spent, *by_kind.after_verdict(self.assignment, attempt, answer))

    def _cancel(self, attempt: Attempt, meter: Meter) -> None:
        """End an attempt that a stop took from the judge; when the harness ends, it goes on."""
        if self.assignment.stop_wanted == "now" and not self.stopping.is_set():
            self._cut(attempt, "the campaign was stopped while this was judged", meter)

    def _cut(self, attempt: Attempt, said: str, meter: Meter) -> None:
        self._append(*cut(attempt, said, meter.spent_s))
        meter.forget()

    def _known_answer(self, attempt: Attempt) -> Verdict | None:
        """Return the verdict that takes no judge: a rejected hold, or a tree judged before."""
        if attempt.rejected:
            said = f"held for {attempt.hold}, and a person rejected it"
            return attempts.unmeasured(attempt, "suspect", said, *attempt.hold_reasons)
        same = attempts.duplicate_of(self.assignment, attempt.tree or "")
        if same is None or attempt.tries > 1 or attempt.status != "submitted":
            return None
        return attempts.unmeasured(
            attempt, "duplicate", f"the same tree was judged in attempt {same}"
        )


def log_of(blobs: Path, assignment: str, number: int) -> Path:
    """Return where an attempt's worker is heard while it is at work."""
    return blobs / f".said-{assignment}-{number}"


def meter_of(blobs: Path, assignment: str, attempt: Attempt) -> Path:
    """Return where it is written down what an attempt spends until the next event says so.

    A file that a kill left beside its event goes by another number and counts no more.
    """
    return blobs / f".spent-{assignment}-{attempt.started.attempt}-{attempt.spendings}"


def interrupted(blobs: Path, assignment: str, attempt: Attempt) -> list[Strict]:
    """Return the end of an attempt that a kill took from its agent, or from what came of it."""
    if attempt.status == "working":
        return _killed(blobs, assignment, attempt, "the harness was ended")
    return [e.AttemptEnded(attempt=attempt.started.attempt, result="killed")]


def cut(attempt: Attempt, said: str, judge_s: float = 0.0) -> list[Strict]:
    """Return the end of an attempt that is not judged, and why not; judge_s: spent on it, s."""
    verdict = attempts.unmeasured(attempt, "cancelled", said)
    spent = [_judged(verdict.attempt, judge_s)] if judge_s else []
    return [*spent, verdict, e.AttemptEnded(attempt=verdict.attempt, result="cancelled")]


def cut_off(blobs: Path, assignment: str, attempt: Attempt) -> list[Strict]:
    """Return the end of an attempt that its campaign's end took from the judge."""
    judge_s = read_meter(meter_of(blobs, assignment, attempt))
    return cut(attempt, "the campaign ended before this was judged", judge_s)


def _judged(number: int, judge_s: float) -> e.BudgetSpent:
    return e.BudgetSpent(attempt=number, agent=None, amounts={"judge_s": judge_s})


def told(text: str) -> str:
    """Return foreign text as an event may hold it: escaped and shortened."""
    return reason.shorten(reason.escape(text), reason.RUN_BUDGET)


def _shown(paths: list[str]) -> list[str]:
    """Return the first paths as text: a file's name may be any bytes, and long."""
    return [reason.shorten(reason.escape(path), MOST_PATH) for path in paths[:MOST_PATHS]]


def _kept(blobs: Path, transcript: bytes | None) -> str | None:
    if not transcript:
        return None
    digest = hashlib.sha256(transcript).hexdigest()
    keep_blob(blobs, Sha256(digest), transcript)
    return digest


def _killed(blobs: Path, assignment: str, attempt: Attempt, why: str) -> list[Strict]:
    """Return the end of an attempt whose agent a kill took; what it had said by then is kept.

    It is none of the budget's attempts, and its time counts: the rig has spent it.
    """
    number = attempt.started.attempt
    said = _kept(blobs, read_log(log_of(blobs, assignment, number)))
    ended: list[Strict] = [_finished(number, "killed", why, said, partial=said is not None)]
    wall_s = read_meter(meter_of(blobs, assignment, attempt))
    if wall_s:
        amounts = {"wall_s": wall_s}
        ended.append(e.BudgetSpent(attempt=number, agent="workers", amounts=amounts))
    return [*ended, e.AttemptEnded(attempt=number, result="killed")]


def _finished(
    number: int,
    status: AgentStatus,
    reason: str | None,
    transcript: str | None = None,
    *,
    partial: bool = False,
) -> e.AgentFinished:
    return e.AgentFinished(
        attempt=number,
        status=status,
        stop_reason=reason,
        turns=None,
        transcript=transcript,
        partial=partial,
    )
