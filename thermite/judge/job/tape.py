"""The facts of one job so far, and the one way to add to them.

Everything that a job decides is read from here, so that a job which begins with a history
comes to the same end as one that was never interrupted.
"""

from collections.abc import Iterator, Sequence

from thermite.judge.job.desk import Desk
from thermite.judge.measure.block import measured, paired
from thermite.judge.measure.disturbance import DISTURBANCES
from thermite.judge.verdict.exact import NOT_EXACT
from thermite.schema.event import Block, Check, Decision, JudgeStarted, Run
from thermite.schema.job import Job, JudgeFact
from thermite.schema.rule import MeasuredBlock, MetricRule
from thermite.schema.verdict import JudgeStage

MOST_INTERRUPTED = 3
"""Interrupted blocks of an attempt; the fourth ends it (judging, 3.10)."""
NOISE_FROM = 10
"""Blocks of a try from which its share of disturbed ones counts (judging, 3.1)."""
RE_ANCHOR_DISTURBED = 0.9
"""Share of blocks that may be disturbed where a figure is measured once, and no verdict hangs on it
(our figure): to drop more of them takes time alone."""
MOST_BLOCKS = 1000
"""A try ends as noisy at so many blocks even when the contract allows any share (our bound)."""


class Tape:
    """Facts of one try of a job, in order; they are appended before they count here."""

    def __init__(self, job: Job, desk: Desk, metrics: dict[str, MetricRule]) -> None:
        self.job = job
        self.facts: list[JudgeFact] = list(job.history)
        self._append = desk.append
        self._metrics = metrics
        self._counted: dict[JudgeStage, list[MeasuredBlock]] = {}
        for block in self._blocks():
            self._count(block, self.facts)

    def add(self, facts: Sequence[JudgeFact]) -> None:
        """Append facts as one transaction; when this returns they are durable."""
        self._append(facts)
        self.facts.extend(facts)
        for fact in facts:
            if isinstance(fact, Block):
                self._count(fact, facts)

    def counted(self, stage: JudgeStage) -> list[MeasuredBlock]:
        """Return the counted blocks of a stage, in order."""
        return self._counted.get(stage, [])

    def next_block(self, stage: JudgeStage) -> int:
        """Return the index that the stage's next block has; dropped ones count."""
        return sum(block.stage == stage for block in self._blocks())

    @property
    def started(self) -> JudgeStarted | None:
        """The event that the warm-up ended with, None before."""
        return next((fact for fact in self.facts if isinstance(fact, JudgeStarted)), None)

    @property
    def last_decision(self) -> Decision | None:
        """The newest decision, None before the first."""
        decisions = (fact for fact in reversed(self.facts) if isinstance(fact, Decision))
        return next(decisions, None)

    @property
    def was_not_exact(self) -> bool:
        """Whether a block of confirm showed that values vary which screen saw the same."""
        return any(block.dropped == NOT_EXACT for block in self._blocks())

    @property
    def interrupted(self) -> int:
        """How many blocks of this attempt were cut off by a kill, earlier tries included."""
        here = sum(block.dropped == "interrupted" for block in self._blocks())
        return self.job.interrupted + here

    @property
    def is_noisy(self) -> bool:
        """Whether too many blocks of this try were disturbed (judging, 3.1)."""
        blocks = list(self._blocks())
        disturbed = sum(_is_disturbed(block) for block in blocks)
        most = self._most_disturbed * len(blocks)
        return len(blocks) >= NOISE_FROM and (disturbed > most or len(blocks) >= MOST_BLOCKS)

    @property
    def _most_disturbed(self) -> float:
        share = self.job.contract.judging.most_discarded
        return max(share, RE_ANCHOR_DISTURBED) if self.job.kind == "re_anchor" else share

    @property
    def run_seconds(self) -> float:
        """Judge time of this try so far: its runs, on the spawner's clock."""
        records = (fact.record for fact in self.facts if isinstance(fact, Run))
        return sum(record.t_ns for record in records if record is not None) / 1e9

    def _blocks(self) -> Iterator[Block]:
        return (fact for fact in self.facts if isinstance(fact, Block))

    def _count(self, block: Block, among: Sequence[JudgeFact]) -> None:
        if block.dropped is not None:
            return
        own = [f for f in among if isinstance(f, Run | Check) and _is_of(f, block)]
        made = measured(block.stage, block.block, paired(own), self._metrics)
        self._counted.setdefault(block.stage, []).append(made)


def _is_of(fact: Run | Check, block: Block) -> bool:
    return (fact.stage, fact.block) == (block.stage, block.block)


def _is_disturbed(block: Block) -> bool:
    return not DISTURBANCES.isdisjoint(block.drops)
