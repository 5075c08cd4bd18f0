"""Warm-up and blocks, one after the other, until the facts lead to an end.

The same walk serves attempts and re-anchors; they differ in their stages, in the rule
that decides after a block, and in what stands at the beginning.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from thermite.errors import InfrastructureError
from thermite.judge.build.store import StoredBuild
from thermite.judge.job.bench import Bench, is_failed, open_bench
from thermite.judge.job.desk import Desk
from thermite.judge.job.ending import Ending
from thermite.judge.job.outcome import Identity
from thermite.judge.job.tape import Tape
from thermite.judge.measure.block import broken_constraints, measured, paired
from thermite.judge.measure.startup import startup_shares
from thermite.judge.verdict.coin import draw_order
from thermite.judge.verdict.exact import NOT_EXACT, is_broken_by
from thermite.judge.verdict.rule import Ruling, stage_cells
from thermite.judge.verdict.words import percent
from thermite.schema.event import Check, Run
from thermite.schema.job import Job, JudgeFact
from thermite.schema.rule import MeasuredBlock, RuleParameters
from thermite.schema.verdict import Arm, JudgeStage


class Walk(ABC):
    """One job's blocks; k: the index that its orders are drawn with."""

    def __init__(self, job: Job, desk: Desk, tape: Tape, p: RuleParameters, k: int) -> None:
        self.job, self.desk, self.tape, self.p, self.k = job, desk, tape, p, k
        self.identity = Identity(attempt=job.attempt, tries=job.tries)

    @abstractmethod
    def stage(self) -> JudgeStage:
        """Return the stage that the job is in."""

    @abstractmethod
    def decide(self, stage: JudgeStage, blocks: Sequence[MeasuredBlock]) -> Ruling:
        """Return what the rule says after the newest of the counted blocks."""

    @abstractmethod
    def end(self) -> Ending | None:
        """Return what the facts lead to, None while the job goes on."""

    def beginning(self, shares: Mapping[str, float]) -> list[JudgeFact]:
        """Return what is appended with the first warm-up; shares: of start-up, by cell."""
        _ = shares
        return []

    def measure(self, builds: Mapping[Arm, StoredBuild]) -> Ending | None:
        """Warm up and run blocks to the end; None when the harness is stopping.

        Raises:
            InfrastructureError: the rig, the kit or the champion failed.
        """
        end = self._after_a_kill()
        if end is not None:
            return end
        settle_ms = self.p.judging.settle_ms
        with open_bench(self.desk, self.identity, self.p.metrics, settle_ms, builds) as bench:
            return self._to_the_end(bench)

    def _to_the_end(self, bench: Bench) -> Ending | None:
        warm: JudgeStage | None = None
        end = None
        while end is None and not self.desk.stopping():
            stage = self.stage()
            if warm == stage:
                self._block(bench, stage)
            else:
                self._warm_up(bench, stage)
                warm = stage
            end = self.end()
        return end

    def _after_a_kill(self) -> Ending | None:
        """Void the block that a kill cut off: no half block is ever in the ledger (3.10)."""
        if not self.job.history or self.is_fresh:
            return None
        stage = self.stage()
        self.tape.add([self.identity.dropped(stage, self.tape.next_block(stage), "interrupted")])
        return self.end()

    @property
    def is_fresh(self) -> bool:
        """Whether no stage has begun yet."""
        return not self.tape.facts

    def _warm_up(self, bench: Bench, stage: JudgeStage) -> None:
        cells = stage_cells(stage, self.p)
        facts, probes = bench.warm_up(stage, cells, self.p.judging.warmup_runs)
        if is_failed(facts):
            self.tape.add(facts)
            return
        shares = self._startup_shares(facts, probes)
        begins = self.beginning(shares) if self.is_fresh else []
        self.tape.add([*facts, *begins])

    def _startup_shares(
        self, facts: Sequence[Run | Check], probes: Sequence[int]
    ) -> dict[str, float]:
        shares = startup_shares(facts, probes)
        for cell, share in shares.items():
            if share > self.p.judging.startup_share_max:
                raise InfrastructureError(
                    f"cell {cell} is too short: startup is {percent(share)} of a run;"
                    " raise its work"
                )
        return shares

    def _block(self, bench: Bench, stage: JudgeStage) -> None:
        number = self.tape.next_block(stage)
        seed = bytes.fromhex(self.job.order_seed)
        turns = draw_order(seed, self.k, stage, number, stage_cells(stage, self.p))
        try:
            facts = bench.block(stage, number, turns)
        except InfrastructureError:
            self.tape.add([self.identity.dropped(stage, number, "infra")])
            raise
        self.tape.add([*facts, *self._judged(stage, number, facts)])

    def _judged(
        self, stage: JudgeStage, number: int, facts: Sequence[Run | Check]
    ) -> list[JudgeFact]:
        dropped = self._dropped(facts)
        if dropped is not None:
            return [self.identity.dropped(stage, number, dropped)]
        block = measured(stage, number, paired(facts), self.p.metrics)
        if stage == "confirm" and is_broken_by(block, self.tape.counted("screen"), self.p):
            return [self.identity.dropped(stage, number, NOT_EXACT)]
        ruling = self.decide(stage, [*self.tape.counted(stage), block])
        return [self.identity.counted(block, self.p), self.identity.decided(stage, ruling)]

    def _dropped(self, facts: Sequence[Run | Check]) -> str | None:
        """Return why a block does not count: a failure, or what disturbed it; never its value."""
        runs = [fact for fact in facts if isinstance(fact, Run)]
        failed = [run.outcome for run in runs if run.outcome != "ok"]
        if failed:
            return failed[0]
        if broken_constraints(paired(facts), self.p.constraints, self.p.metrics):
            return "constraint_failed"
        return ", ".join(sorted({flag for run in runs for flag in run.flags})) or None
