"""One verdict here and now, without a signed order: `thermite judge` and `thermite kit test`.

The same job code, a real ledger and a real spawner; only the order is missing, so the first
event of a job is `local_job` with a nonce of its own, and every report says that this shuts
out no picking among nonces. The state folder may be thrown away afterwards.
Source: judging, 3.11; kit requirements, 20.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from thermite.campaign import attempts, hill_climb
from thermite.campaign.state import Assignment, Attempt
from thermite.errors import InfrastructureError, KitError, LedgerError
from thermite.harness import clock
from thermite.harness.book import Draft
from thermite.harness.judge_job import Bench, Turn
from thermite.harness.rig import open_bench
from thermite.judge.job.selftest import Mode
from thermite.judge.verdict.coin import commitment, order_seed
from thermite.kit.export import tree_of
from thermite.kit.fit import DOES_NOT_FIT
from thermite.kit.folder import commit_of_folder
from thermite.kit.known import local_problems
from thermite.rig.pinning import timed_as
from thermite.rig.start import spawner
from thermite.schema import event as e
from thermite.schema.contract import Contract, RepoAt
from thermite.schema.ids import CommitId
from thermite.schema.job import Held
from thermite.schema.kit import Kit
from thermite.schema.rig_settings import RigSettings
from thermite.schema.strict import Strict

PROJECT: Final = "local"
"""Name of the kept repository that a local job's folders are committed into."""
NONCE_BYTES: Final = 32
"""judging, 3.1: a local job puts 32 fresh random bytes in the place of the payload's hash."""


MOST_DISCARDED: Final = 0.9
"""Share of blocks that the machine may disturb where nothing else is said (our figure): a host that
takes a CPU away now and then costs whoever waits for a verdict time, and decides nothing."""
INTERRUPTED: Final = "interrupted"
"""Why a job ended that came to no verdict of the judge."""


@dataclass(frozen=True)
class LocalVerdict:
    """What came of one local job.

    hold: why a promotion would wait for a person, or None; blocks: counted in its last try.
    """

    assignment: str
    attempt: Attempt
    hold: str | None
    blocks: int
    seconds: float

    @property
    def verdict(self) -> e.Verdict:
        """The judge's word."""
        if self.attempt.verdict is None:
            raise RuntimeError("a local job that ended has a verdict")
        return self.attempt.verdict


class LocalJudge:
    """A rig of this process's own, with one kit."""

    def __init__(self, bench: Bench, kit_folder: Path, kit_name: str) -> None:
        self.bench = bench
        repo = bench.folder.kit_repo(kit_name)
        self.kit = RepoAt(repo=kit_name, commit=commit_of_folder(repo, kit_folder))

    def commit(self, folder: Path) -> str:
        """Commit a project's folder as it stands; return the id."""
        return commit_of_folder(self.bench.folder.project_repo(PROJECT), folder)

    def judge(
        self, candidate: str, champion: str | None, contract: Contract, name: str | None = None
    ) -> LocalVerdict:
        """Judge a commit against a champion, or alone, to its verdict.

        Args:
            candidate: commits of the project's repository, as `commit` gave them; champion
                likewise, or None; contract: cells, objective and the rest of the rule;
                name: what the attempt is called.

        Raises:
            InfrastructureError: the kit or the rig can't be used at all.
        """
        begun = clock.mono_ns()
        assignment = self._begin(candidate, champion, contract)
        state = self.bench.book.state.assignments[assignment]
        turn = Turn(self.bench, state, lambda: False, contract)
        self._submit(assignment, candidate, champion, name)
        hold, blocks = self._to_the_end(turn, alone=champion is None)
        self._end(assignment, "local job")
        seconds = (clock.mono_ns() - begun) / 1e9
        return LocalVerdict(assignment, state.attempts[1], hold, blocks, seconds)

    def selftest(
        self,
        commit: str,
        contract: Contract,
        mode: Mode = "short",
        kept: Callable[[Sequence[e.Run]], None] = lambda _: None,
        count: int | None = None,
    ) -> e.RigSelftest:
        """Measure a commit against itself; the ledger gets what the rig can see.

        Args:
            count: counted blocks; None for the mode's own.
            kept: called with the runs of each block that counts.

        Raises:
            InfrastructureError: the commit can't be built or run; the job is ended all the same.
        """
        assignment = self._begin(commit, commit, contract)
        state = self.bench.book.state.assignments[assignment]
        try:
            found = Turn(self.bench, state, lambda: False, contract).selftest(mode, kept, count)
        except InfrastructureError:
            self._end(assignment, "selftest")
            raise
        if found is None:
            raise RuntimeError("a local job is never asked to stop")
        self._end(assignment, "selftest")
        return found

    def _end(self, assignment: str, reason: str) -> None:
        state = self.bench.book.state.assignments[assignment]
        end = hill_climb.the_end(state, reason, self.bench.seed(state))
        self.bench.book.append(Draft(end, assignment, actor="local"))

    def _begin(self, candidate: str, champion: str | None, contract: Contract) -> str:
        nonce = secrets.token_bytes(NONCE_BYTES)
        seed = order_seed(self.bench.coin_key, nonce)
        job = e.LocalJob(
            project=RepoAt(repo=PROJECT, commit=candidate),
            kit=self.kit,
            champion=None if champion is None else RepoAt(repo=PROJECT, commit=champion),
            cells=[*contract.cells, *contract.held_out_cells],
            nonce=nonce.hex(),
            order_commitment=commitment(seed).hex(),
        )
        assignment = nonce.hex()[:32]
        self.bench.book.append(Draft(job, assignment, actor="local"))
        return assignment

    def _submit(
        self, assignment: str, candidate: str, champion: str | None, name: str | None
    ) -> None:
        tree = tree_of(self.bench.folder.project_repo(PROJECT), CommitId(candidate))
        payloads: list[Strict] = [
            e.LaneOpened(lane=0, backend="local", options={}, model=None, strategy="hill_climb"),
            e.AttemptStarted(
                attempt=1,
                base=champion or candidate,
                proposal=name,
                brief_sha256=None,
                limits={},
            ),
            e.CandidateSubmitted(attempt=1, commit=candidate, tree=tree, paths=[]),
        ]
        self.bench.book.append(*[Draft(p, assignment, lane=0, actor="local") for p in payloads])

    def _to_the_end(self, turn: Turn, *, alone: bool) -> tuple[str | None, int]:
        """Take the attempt to the judge until it stays there.

        Returns:
            Why it is held, or None; how many blocks its last try counted.
        """
        hold, blocks = None, 0
        while turn.assignment.attempts[1].status != "ended":
            attempt = turn.assignment.attempts[1]
            if attempt.status == "held":
                hold = attempt.hold
                payloads: list[Strict] = hill_climb.hold_ran_out(turn.assignment, 1)
            else:
                answer = turn.judge_alone(1) if alone else turn.judge(1)
                if answer is None:
                    raise RuntimeError("a local job is never asked to stop")
                counted = [f for f in attempt.facts if isinstance(f, e.Block) and f.dropped is None]
                blocks = len(counted)  # the state forgets a try's facts with its verdict
                payloads = (
                    [hill_climb.hold(answer)]
                    if isinstance(answer, Held)
                    else hill_climb.after_verdict(turn.assignment, attempt, answer)
                )
            self.bench.book.append(*[Draft(p, turn.id, lane=0) for p in payloads])
        return hold, blocks


@contextlib.contextmanager
def local_judge(
    state: Path, kit_folder: Path, kit_name: str, settings: RigSettings | None = None
) -> Iterator[LocalJudge]:
    """Run a rig for this process alone in a state folder, and judge with one kit.

    SIGINT ends the job that runs as cancelled, and everything in order.

    Args:
        settings: a rig's own, when the state is a rig's.

    Raises:
        InfrastructureError: the spawner does not start.
        KeyboardInterrupt: there was a SIGINT.
    """
    asked = settings or RigSettings()
    config = {} if settings is None else timed_as(settings)
    with spawner(state, interruptible=True, **config) as stages:
        bench = open_bench(state, stages, asked)
        try:
            end_open_jobs(bench)
            yield LocalJudge(bench, kit_folder, kit_name)
        except KeyboardInterrupt:
            with contextlib.suppress(LedgerError):  # the next command in this folder does it
                end_open_jobs(bench)
            raise
        finally:
            bench.book.close()


def end_open_jobs(bench: Bench) -> None:
    """End the local jobs that an interrupt or a kill left open, as cancelled; coins are shown.

    Raises:
        LedgerError: the ledger takes no more.
    """
    for job in list(bench.book.state.assignments.values()):
        if job.nonce is None or job.status == "ended":
            continue
        open_ones = [a for a in job.attempts.values() if a.status != "ended"]
        payloads = [payload for attempt in open_ones for payload in _cancelled(job, attempt)]
        payloads.append(hill_climb.the_end(job, INTERRUPTED, bench.seed(job)))
        bench.book.append(*[Draft(p, job.id, actor="local") for p in payloads])


def _cancelled(job: Assignment, attempt: Attempt) -> list[Strict]:
    if attempt.status == "held":
        return hill_climb.hold_ran_out(job, attempt.started.attempt)
    verdict = attempts.unmeasured(attempt, "cancelled", "the job was interrupted")
    return [verdict, e.AttemptEnded(attempt=verdict.attempt, result=verdict.verdict)]


def local_contract(kit: Kit, at: RepoAt, fields: dict[str, object]) -> Contract:
    """Return a hill climb's contract from those of its fields that a local job may set.

    Raises:
        KitError: the kit does not fit them, e.g. it lacks a cell.
    """
    problems = local_problems(kit, fields)
    if problems:
        raise KitError(DOES_NOT_FIT + "; ".join(problems))
    whole = {
        "schema_version": 1,
        "name": kit.name,
        "campaign": "hill_climb",
        "task": "judge here and now",
        "project": {"repo": PROJECT, "commit": "0" * 40, "kit": msgspec.to_builtins(at)},
        "isolation": "any",
        **fields,
    }
    contract = msgspec.convert(whole, Contract)
    judging = contract.judging
    if judging.max_discard_share is None:
        judging = msgspec.structs.replace(judging, max_discard_share=MOST_DISCARDED)
    return msgspec.structs.replace(contract, judging=judging)
