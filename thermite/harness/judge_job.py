"""One attempt's turn at the judge: the job is made from the state, the judge is lent a desk.

The judge appends what it measures by itself; the verdict comes back and is appended here
together with what follows from it, as one transaction. One job at a time: a rig has one set
of run CPUs, and two jobs on it would only wait for each other.
"""

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import msgspec

from thermite.campaign import hill_climb
from thermite.campaign.state import Assignment
from thermite.errors import InfrastructureError
from thermite.harness import clock
from thermite.harness.book import Book, Draft
from thermite.harness.folder import RigFolder
from thermite.harness.gateway_slots import GatewaySlots
from thermite.harness.unlocking import Unlocking
from thermite.judge.build.store import BuildStore
from thermite.judge.job import Desk, judge, re_anchor, selftest
from thermite.judge.job.selftest import Mode
from thermite.judge.simulate.sight import sees
from thermite.judge.verdict.coin import order_seed
from thermite.judge.verdict.params import min_effect
from thermite.kit.export import export_folder, tree_entries, tree_of
from thermite.kit.manifest import load_kit
from thermite.rig.stages import Stages
from thermite.rig.toolchain import kernel_and_driver
from thermite.schema.contract import Contract
from thermite.schema.event import Block, RigSelftest, Run, Verdict
from thermite.schema.ids import CommitId
from thermite.schema.job import Held, Job, JobKind, JudgeFact, Revision
from thermite.schema.judging import JUDGED_RUN_S
from thermite.schema.kit import Kit
from thermite.schema.rig_settings import McpProgram
from thermite.schema.strict import Strict


@dataclass(frozen=True)
class Bench:
    """What a campaign needs of the rig.

    turn: held while a job is judged; at_first: the selftest of the first campaign after a reboot
    or a change of kernel or driver; mcp: the owner's MCP servers; gateways: slots for gateways;
    unlocking: the way to what MCP servers' headers carry.
    """

    book: Book
    folder: RigFolder
    stages: Stages
    store: BuildStore
    coin_key: bytes
    turn: threading.Lock
    toolchain: str
    at_first: Mode = "short"
    mcp: Mapping[str, McpProgram] = field(default_factory=dict)
    gateways: GatewaySlots = field(default_factory=GatewaySlots)
    unlocking: Unlocking = field(default_factory=Unlocking)

    def seed(self, assignment: Assignment) -> bytes:
        """Return the seed of an assignment's coin; nothing is stored while it is secret."""
        return order_seed(
            self.coin_key, bytes.fromhex(assignment.command or assignment.nonce or "")
        )


def exported_kit(folder: RigFolder, repo: str, commit: str) -> Path:
    """Return the folder with a kit's files at one commit, exported once.

    Raises:
        InfrastructureError: the commit is not on this rig.
    """
    target = folder.kit_export(repo, commit)
    export_folder(folder.kit_repo(repo), CommitId(commit), target)
    return target


class _Stopwatch:
    """Judge time of a run, from the first counted block of a selftest to its last."""

    def __init__(self, kept: Callable[[Sequence[Run]], None]) -> None:
        self._kept = kept
        self._first_ns: int | None = None
        self._last_ns, self._runs = 0, 0

    def hear(self, runs: Sequence[Run]) -> None:
        """Take the runs of one block that counts."""
        self._kept(runs)
        self._last_ns = clock.mono_ns()
        if self._first_ns is None:
            self._first_ns = self._last_ns
        else:
            self._runs += len(runs)

    @property
    def run_s(self) -> float | None:
        """Seconds of a run with reset and check, None with fewer than two blocks."""
        if self._first_ns is None or not self._runs:
            return None
        return (self._last_ns - self._first_ns) / 1e9 / self._runs


class Turn:
    """An assignment's turns at the judge."""

    def __init__(
        self,
        bench: Bench,
        assignment: Assignment,
        stopping: Callable[[], bool],
        contract: Contract | None = None,
    ) -> None:
        """Make ready for turns; contract: a local job's, else the assignment's own."""
        self.bench, self.id, self.stopping = bench, assignment.id, stopping
        self.project = bench.folder.project_repo(assignment.project.repo)
        self.seed = bench.seed(assignment)
        self._contract = contract

    @cached_property
    def kit_folder(self) -> Path:
        """The assignment's kit, exported when a job first needs it.

        Raises:
            InfrastructureError: there is none, or its commit is not on this rig.
        """
        kit = self.assignment.kit
        if kit is None:
            raise InfrastructureError(f"assignment {self.id} has no kit to judge with")
        return exported_kit(self.bench.folder, kit.repo, kit.commit)

    @cached_property
    def kit(self) -> Kit:
        """The kit's manifest."""
        return load_kit(self.kit_folder)

    def judge(
        self, number: int, follow: Callable[[Verdict | Held], None] = lambda _: None
    ) -> Verdict | Held | None:
        """Judge one attempt to its verdict or hold; None: the harness is stopping.

        Args:
            follow: appends what follows, before another lane's job begins: that one would be
                about the champion that is about to be another.
        """
        with self.bench.turn:
            if self.stopping():
                return None
            with self.bench.book.lock:
                job = self._attempt_job(number)
            answer = judge(job, self._desk())
            if answer is not None:
                follow(answer)
            return answer

    def measure_again(self, number: int) -> None:
        """Measure the champion against the starting commit; the ledger gets the claim."""
        with self.bench.turn:
            if self.stopping():
                return
            with self.bench.book.lock:
                job = self._re_anchor_job(number)
            re_anchor(job, self._desk())

    def first_selftest(self) -> None:
        """Measure the starting commit against itself, and append what the rig can see.

        A full one when the rig was booted since the last, or has another kernel or driver, and
        a short one else. Source: judging, 3.7.
        """
        known = self.bench.book.state.is_known_as(clock.boot_id(), kernel_and_driver())
        self.selftest("short" if known else self.bench.at_first)

    def selftest(
        self,
        mode: Mode,
        kept: Callable[[Sequence[Run]], None] = lambda _: None,
        count: int | None = None,
    ) -> RigSelftest | None:
        """Measure the starting commit against itself, and append and return what was seen.

        Args:
            count: counted blocks; None for the mode's own.
            kept: called with the runs of each block that counts.

        None: the harness or the campaign is stopping.
        """
        with self.bench.turn:
            if self.stopping():
                return None
            nonce = secrets.token_bytes(32)
            start = self._revision(self.assignment.project.commit)
            job = self._job(None, 1, start, self.assignment.project.commit, [])
            seed = order_seed(self.bench.coin_key, nonce).hex()
            job = msgspec.structs.replace(job, order_seed=seed)
            before = self.bench.book.state.selftest
            watch = _Stopwatch(kept)
            found = selftest(
                job,
                self._desk(),
                nonce=nonce.hex(),
                mode=mode,
                count=count,
                before=before,
                kept=watch.hear,
            )
            if self.stopping():
                return None
            figures = found.figures | {JUDGED_RUN_S: watch.run_s}
            found = msgspec.structs.replace(found, figures=figures, runs_on=kernel_and_driver())
            if mode == "full":
                least = self._least_effect(job.contract)
                smallest = sees(found.blocks, least, nonce.hex())
                found = msgspec.structs.replace(found, sees=smallest)
            self._append([found])
            return found

    def _least_effect(self, contract: Contract) -> float:
        if contract.objective is None:
            raise RuntimeError("a selftest without an objective")
        return min_effect(contract.objective, self.kit.target)

    def judge_alone(self, number: int) -> Verdict | Held | None:
        """Build, run and check one attempt's candidate, compared with nothing."""
        with self.bench.turn:
            with self.bench.book.lock:
                job = msgspec.structs.replace(
                    self._attempt_job(number), kind="single", champion=None, history=[]
                )
            return judge(job, self._desk())

    @property
    def assignment(self) -> Assignment:
        """The assignment as the book has it now."""
        return self.bench.book.state.assignments[self.id]

    def _attempt_job(self, number: int) -> Job:
        attempt = self.assignment.attempts[number]
        if attempt.commit is None or attempt.tree is None:
            raise RuntimeError(f"attempt {number} is judged before it has a candidate")
        candidate = Revision(commit=attempt.commit, tree=attempt.tree)
        is_climb = self.assignment.contract.campaign == "hill_climb"
        champion = self.assignment.champion if is_climb else None
        stale = hill_climb.is_stale(self.assignment, attempt)
        tries = attempt.tries + stale
        history = [] if stale else [f for f in attempt.facts if f.tries == tries]
        now = sum(isinstance(f, Block) and f.dropped == "interrupted" for f in history)
        job = self._job(number, tries, candidate, champion, history)
        return msgspec.structs.replace(
            job, interrupted=attempt.interrupted - now, released=attempt.released
        )

    def _re_anchor_job(self, number: int) -> Job:
        assignment = self.assignment
        known = [r for r in assignment.re_anchors if r.number == number]
        champion = self._revision(assignment.champion)
        start = assignment.project.commit
        return self._job(None, number, champion, start, known[0].facts if known else [])

    def _job(
        self,
        attempt: int | None,
        tries: int,
        candidate: Revision,
        champion: str | None,
        history: Sequence[JudgeFact],
    ) -> Job:
        assignment = self.assignment
        if assignment.kit is None:
            raise RuntimeError("a job without a kit")
        kind: JobKind = "attempt" if champion is not None else "goals"
        return Job(
            kind="re_anchor" if attempt is None else kind,
            assignment=self.id,
            attempt=attempt,
            tries=tries,
            candidate=candidate,
            champion=None if champion is None else self._revision(champion),
            k=assignment.used_k + 1,
            order_seed=self.seed.hex(),
            contract=self._contract or assignment.contract,
            contract_sha256=assignment.contract_sha256,
            kit=assignment.kit,
            judged_outputs=dict(assignment.answered),
            history=list(history),
            order_effect=self._order_effect(),
        )

    def _order_effect(self) -> float:
        """Return what the newest selftest found of one order against the other, log-ratio."""
        seen = self.bench.book.state.selftest
        return (seen.figures.get("order_effect") if seen is not None else None) or 0.0

    def _revision(self, commit: str) -> Revision:
        return Revision(commit=commit, tree=tree_of(self.project, CommitId(commit)))

    def _desk(self) -> Desk:
        return Desk(
            stages=self.bench.stages,
            kit=self.kit,
            kit_folder=self.kit_folder,
            export=lambda commit: tree_entries(self.project, CommitId(commit)),
            store=self.bench.store,
            append=self._append,
            stopping=self.stopping,
            scratch=self.bench.folder.scratch,
            toolchain=self.bench.toolchain,
            models=self._models(),
        )

    def _models(self) -> dict[str, Path]:
        wanted = self.assignment.contract.models
        return {sha256: self.bench.folder.models / sha256 for sha256 in wanted}

    def _append(self, payloads: Sequence[Strict]) -> None:
        drafts = [Draft(p, assignment=self.id, actor="judge") for p in payloads]
        self.bench.book.append(*drafts)
