"""The campaigns that run on this rig: one thread each, and one for each of its lanes.

A campaign opens its lanes, tests the rig, lets the lanes work, waits for people where
they are asked, measures its champion once more against the start, and ends. A fault of ours, or
a ledger that takes no more, ends the whole process: the spawner starts it again and the ledger
says where to go on.
"""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Final

from thermite.campaign import by_kind, hill_climb, review
from thermite.campaign.goal import ALL_MET
from thermite.campaign.state import Assignment
from thermite.command.instant import read_instant
from thermite.errors import ContractError, InfrastructureError, KitError, LedgerError
from thermite.harness import clock
from thermite.harness.book import Draft
from thermite.harness.gateway import Gateway
from thermite.harness.grants import needs_gateway, servers_of
from thermite.harness.judge_job import Bench, Turn
from thermite.harness.lane import PAUSE_S, Lane, cut_off, interrupted, told
from thermite.harness.proposer import Backend, backend_for
from thermite.harness.worker import Command
from thermite.schema import event as e
from thermite.schema.strict import Strict

JOIN_S: Final = 30.0
"""How long the end of the harness waits for its campaigns (our figure)."""


class Campaigns:
    """Everything that runs; `fatal` is called once when the process can't go on.

    Args:
        ended: called with an assignment's id when it has ended.
    """

    def __init__(
        self, bench: Bench, ended: Callable[[str], None], fatal: Callable[[BaseException], None]
    ) -> None:
        self.bench, self.ended, self.fatal = bench, ended, fatal
        self.stopping = threading.Event()
        self._threads: dict[str, threading.Thread] = {}

    def start(self, assignment: str) -> None:
        """Begin, or go on with, one assignment."""
        if assignment in self._threads:
            return
        thread = threading.Thread(target=self._run, args=(assignment,), name=assignment[:8])
        self._threads[assignment] = thread
        thread.start()

    def resume(self) -> None:
        """Go on with every assignment that has not ended; a local job's command ends its own."""
        for assignment in list(self.bench.book.state.assignments.values()):
            if assignment.status != "ended" and assignment.nonce is None:
                self.start(assignment.id)

    def stop(self) -> None:
        """Let running stages end, start nothing, and wait for the threads."""
        self.stopping.set()
        with self.bench.book.changed:
            self.bench.book.changed.notify_all()
        for thread in self._threads.values():
            thread.join(JOIN_S)

    def _run(self, assignment: str) -> None:
        try:
            Campaign(self.bench, assignment, self.stopping, self.fatal).run()
        except (LedgerError, RuntimeError, OSError) as error:
            self.fatal(error)
            return
        if self.bench.book.state.assignments[assignment].status == "ended":
            self.ended(assignment)


class Campaign:
    """One assignment, from its first lane to its end."""

    def __init__(
        self,
        bench: Bench,
        assignment: str,
        stopping: threading.Event,
        fatal: Callable[[BaseException], None],
    ) -> None:
        self.bench, self.id, self.stopping, self._fatal = bench, assignment, stopping, fatal
        self._failure: str | None = None
        self._is_broken = False
        self._gateway: Gateway | None = None

    @property
    def assignment(self) -> Assignment:
        """The assignment as the book has it now."""
        return self.bench.book.state.assignments[self.id]

    def run(self) -> None:
        """Run to the end, or to the harness's stop or a fault of ours: then it stays open."""
        try:
            reason = self._work()
        except (ContractError, KitError, InfrastructureError) as error:
            reason = told(f"infrastructure: {error}")
        if not self._stays_open:
            self._end(reason)

    def _work(self) -> str:
        with self._tools():
            return self._work_with_tools()

    @contextlib.contextmanager
    def _tools(self) -> Iterator[None]:
        """Run the campaign's gateway, if its workers have tools and run what could call them."""
        book, bench = self.bench.book, self.bench
        if not needs_gateway(self.assignment):
            yield
            return
        with bench.gateways.one(bench.stages, book.changed, self._must_stop) as slot:
            if slot is None:
                yield
                return
            lanes = self._lane_count()
            made = Gateway(
                book,
                bench.folder.blobs,
                bench.stages,
                self.assignment,
                lanes=lanes,
                unlocking=bench.unlocking,
            )
            with made.running(slot, servers_of(self.assignment, bench.mcp)):
                self._gateway = made
                yield

    def _work_with_tools(self) -> str:
        turn = Turn(self.bench, self.assignment, self._must_stop)
        lanes = [self._lane(number, turn) for number in range(self._lane_count())]
        is_climb = self.assignment.contract.campaign == "hill_climb"
        if is_climb and not self.assignment.selftested:
            turn.first_selftest()
        over = threading.Event()
        watch = threading.Thread(target=self._watch, args=(lanes, over))
        watch.start()
        self._let_work(lanes)
        while self._wait_for_people(lanes):
            self._let_work(lanes)
        with self.bench.book.changed:
            over.set()
            self.bench.book.changed.notify_all()
        watch.join()
        if not self._stays_open:
            self._close_holds(lanes)
            self._measure_again(turn)
        ended = by_kind.end_reason(self.assignment) or "nothing left to propose"
        return self._failure or ended

    @property
    def _stays_open(self) -> bool:
        return self.stopping.is_set() or self._is_broken

    def fatal(self, error: BaseException) -> None:
        """Tell a fault that ends the process; the next one goes on where the ledger ends."""
        self._is_broken = True
        self._fatal(error)

    def _must_stop(self) -> bool:
        return self.stopping.is_set() or self.assignment.stop_wanted == "now"

    def _lane_count(self) -> int:
        return self.assignment.contract.agents.workers.lanes

    def _lane(self, number: int, turn: Turn) -> Lane:
        backend = self._backend(number, turn)
        if number not in self.assignment.lanes:
            workers = self.assignment.contract.agents.workers
            strategy = str(workers.options.get("strategy", "hill_climb"))
            self._append(
                e.LaneOpened(
                    lane=number,
                    backend=workers.backend,
                    options=workers.options,
                    model=workers.model,
                    strategy=strategy,
                ),
                lane=number,
            )
        return Lane(number, turn, backend, self.bench.folder.blobs, self.stopping)

    def _backend(self, number: int, turn: Turn) -> Backend:
        def command() -> Backend:
            stages = self.bench.stages
            return Command(turn.project, self.assignment, number, stages, self._gateway)

        return backend_for(self.assignment, turn.project, command)

    def _let_work(self, lanes: Sequence[Lane]) -> None:
        threads = [threading.Thread(target=self._guarded, args=(lane,)) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _guarded(self, lane: Lane) -> None:
        """Run a lane; a failure of the rig ends the campaign, a fault of ours the process."""
        try:
            lane.run()
        except InfrastructureError as error:
            self._failure = told(f"infrastructure: {error}")
        except Exception as error:  # noqa: BLE001  a thread's fault must not pass unseen
            self.fatal(error)

    def _watch(self, lanes: Sequence[Lane], over: threading.Event) -> None:
        """While lanes are at work, end their workers at a stop, and holds that waited too long."""
        book = self.bench.book
        try:
            while not (over.is_set() or self.stopping.is_set()):
                if self.assignment.stop_wanted == "now":
                    for lane in lanes:
                        lane.backend.stop()
                self._expire_holds()
                with book.changed:
                    if not over.is_set():
                        book.changed.wait(PAUSE_S)
        except InfrastructureError as error:
            self._failure = told(f"infrastructure: {error}")
        except Exception as error:  # noqa: BLE001  a thread's fault must not pass unseen
            self.fatal(error)

    def _expire_holds(self) -> None:
        most = timedelta(seconds=self.assignment.contract.judging.hold_timeout_s)
        for number in hill_climb.open_holds(self.assignment):
            with self.bench.book.lock:
                attempt = self.assignment.attempts[number]
                still = attempt.status == "held" and attempt.held_at is not None
                if still and clock.now() - read_instant(attempt.held_at or "") >= most:
                    self._append_all(hill_climb.hold_ran_out(self.assignment, number))

    def _append_all(self, payloads: Sequence[Strict], lane: int | None = None) -> None:
        self.bench.book.append(*[Draft(p, assignment=self.id, lane=lane) for p in payloads])

    def _append(self, payload: Strict, lane: int | None = None) -> None:
        self.bench.book.append(Draft(payload, assignment=self.id, lane=lane))

    def _wait_for_people(self, lanes: Sequence[Lane]) -> bool:
        """Wait for votes and for holds, as long as nobody ends the campaign.

        A hold waits for its whole time, whatever else would have ended the campaign: a person
        needs hours where a lane with nothing left to propose needs none.

        Returns:
            Whether lanes go on: a hold was resolved, or there is a new budget.
        """
        book, ended = self.bench.book, by_kind.end_reason(self.assignment)

        def goes_on() -> bool:
            may_start = ended is not None and by_kind.end_reason(self.assignment) is None
            return may_start or any(self.assignment.open_attempt(lane.number) for lane in lanes)

        with book.changed:
            while not self._is_over() and self._waits_for_people() and not goes_on():
                book.changed.wait(PAUSE_S)
        return not self._is_over() and goes_on()

    def _is_over(self) -> bool:
        return bool(self._failure or self._stays_open or self.assignment.stop_wanted)

    def _waits_for_people(self) -> bool:
        assignment = self.assignment
        votes = review.waiting(assignment) and by_kind.end_reason(assignment) != ALL_MET
        return bool(votes or hill_climb.open_holds(assignment))

    def _close_holds(self, lanes: Sequence[Lane]) -> None:
        """End what still waits for people; what they decided at the last moment counts."""
        with self.bench.book.lock:
            for number in review.waiting(self.assignment):
                self._append_all(review.not_decided(self.assignment, number))
            for number in hill_climb.open_holds(self.assignment):
                self._append_all(hill_climb.hold_ran_out(self.assignment, number))
        for lane in lanes:
            lane.finish()

    def _measure_again(self, turn: Turn) -> None:
        number = hill_climb.re_anchor_due(self.assignment, ending=True)
        if number is not None:
            turn.measure_again(number)

    def _end(self, reason: str) -> None:
        seed = self.bench.seed(self.assignment)
        with self.bench.book.lock:
            self._end_attempts()
            self._append(by_kind.the_end(self.assignment, reason, seed))

    def _end_attempts(self) -> None:
        """End what a kill left open, where the campaign can't be gone on with."""
        blobs = self.bench.folder.blobs
        for attempt in self.assignment.attempts.values():
            if attempt.status in ("working", "finished"):
                self._append_all(interrupted(blobs, self.id, attempt), lane=attempt.lane)
            elif attempt.status not in ("promoted", "ended"):
                self._append_all(cut_off(blobs, self.id, attempt), lane=attempt.lane)
        # Logs and meters of attempts that have ended are of no use to anybody.
        for kind in ("said", "spent"):
            for left in blobs.glob(f".{kind}-{self.id}-*"):
                left.unlink(missing_ok=True)
