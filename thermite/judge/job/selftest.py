"""The selftest: one build against itself, so that a rig's noise has a number.

It informs: its grade stands in ledger and reports. A full one has more blocks, tries what a
known gain comes to, and can find a rig biased or insensitive, which alone refuses anything.
Its runs are no facts of an attempt, so only the event that sums them up is recorded. Source:
the design page on judging, 3.7.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Final, Literal, TypeAlias

import msgspec

from thermite.errors import InfrastructureError
from thermite.judge.build.store import StoredBuild
from thermite.judge.job.attempt import check_target
from thermite.judge.job.bench import RUN_SLOT, Bench, is_failed, open_bench
from thermite.judge.job.builds import arm_build
from thermite.judge.job.desk import Desk
from thermite.judge.job.outcome import Identity
from thermite.judge.measure.block import measured, paired
from thermite.judge.measure.startup import startup_shares
from thermite.judge.verdict import noise
from thermite.judge.verdict.coin import draw_order
from thermite.judge.verdict.order_effect import order_effect
from thermite.judge.verdict.params import rule_parameters
from thermite.judge.verdict.rule import order_pairs, stage_d
from thermite.judge.verdict.walk import walk
from thermite.schema.event import Check, RigSelftest, Run
from thermite.schema.job import Job
from thermite.schema.judging import RUN_S_OF, STARTUP_SHARE_OF
from thermite.schema.rule import MeasuredBlock, RuleParameters
from thermite.schema.verdict import Arm, JudgeStage

Mode: TypeAlias = Literal["short", "full"]

BLOCKS: Final[Mapping[Mode, int]] = {"short": 8, "full": 40}
"""Counted blocks of a selftest (judging, 3.7)."""
MOST_TRIES: Final = 3
"""Blocks in all for each counted one that is asked for; a rig that needs more is noisy (ours)."""
WAKE_PROBES: Final = 200
"""How often a full selftest times the program that does nothing (judging, 3.7)."""
CONTROLS: Final = 2
"""A known gain that is missed so often running makes a rig insensitive (judging, 3.7)."""
PROMOTES: Final = frozenset({"pass", "hold"})
"""How confirm ends on a gain: a hold only waits for a person (judging, 3.2)."""
CONTROL_EFFECTS: Final = 2.0
CONTROL_SDS: Final = 5.0
"""The known gain: so many times min_effect or the robust sd, what is larger (judging, 3.7)."""


@dataclass
class _Blocks:
    """Blocks of one bench, numbered through; kept: called with the runs of each counted one."""

    bench: Bench
    p: RuleParameters
    seed: bytes
    kept: Callable[[Sequence[Run]], None]
    number: int = 0
    dropped: int = 0

    def more(self, count: int) -> list[MeasuredBlock]:
        """Return so many counted blocks, fewer when the machine disturbs too many."""
        made: list[MeasuredBlock] = []
        for _ in range(count * MOST_TRIES):
            if len(made) == count or self.bench.desk.stopping():
                break
            made += self._next()
        return made

    def _next(self) -> list[MeasuredBlock]:
        number, self.number = self.number, self.number + 1
        turns = draw_order(self.seed, 0, "selftest", number, self.p.cells)
        facts = self.bench.block("selftest", number, turns)
        _all_well(facts)
        runs = [fact for fact in facts if isinstance(fact, Run)]
        if any(run.flags for run in runs):
            self.dropped += 1
            return []
        self.kept(runs)
        return [measured("selftest", number, paired(facts), self.p.metrics)]


def selftest(
    job: Job,
    desk: Desk,
    *,
    nonce: str,
    mode: Mode = "short",
    count: int | None = None,
    before: RigSelftest | None = None,
    kept: Callable[[Sequence[Run]], None] = lambda _: None,
) -> RigSelftest:
    """Measure the job's candidate against itself in the contract's cells.

    Args:
        job: its candidate is both arms; its order_seed belongs to the nonce.
        nonce: hex of the 32 random bytes that the order seed was made from.
        count: counted blocks; None for the mode's own.
        before: the rig's last selftest, since only two running can show a lean.
        kept: called with the runs of each block that counts.

    It ends early when the desk is stopping, and what it returns then says nothing.

    Raises:
        InfrastructureError: the build, a run or a check failed, or the rig did.
    """
    check_target(desk)
    p = rule_parameters(job.contract, desk.kit, desk.target)
    p = msgspec.structs.replace(p, held_out_cells=[])
    with _bench(job, desk, p) as bench:
        facts, probes = bench.warm_up("selftest", p.cells, p.judging.warmup_runs)
        _all_well(facts)
        shares, run_s = startup_shares(facts, probes), _run_s(facts)
        blocks = _Blocks(bench, p, bytes.fromhex(job.order_seed), kept)
        counted = blocks.more(count or BLOCKS[mode])
        told = noise.figures([stage_d("selftest", block, p) for block in counted])
        told["discard_share"] = blocks.dropped / max(1, blocks.number)
        told["order_effect"] = _order_effect(counted, p)
        told["startup_share"] = max(shares.values(), default=None)
        told |= _of_short_cells(shares, run_s, p)
        insensitive = None
        if mode == "full":
            told |= _wake(desk)
            insensitive = not _is_control_found(blocks, told["robust_sd"])
    return RigSelftest(
        mode=mode,
        kit=job.kit,
        nonce=nonce,
        order_seed=job.order_seed,
        blocks=[stage_d("selftest", block, p) for block in counted],
        figures=told,
        grade=noise.grade(told["robust_sd"]),
        sees=None,
        biased=noise.looks_biased(told) and before is not None and _leans(before),
        insensitive=insensitive,
    )


def _leans(before: RigSelftest) -> bool:
    return noise.looks_biased(before.figures)


@contextmanager
def _bench(job: Job, desk: Desk, p: RuleParameters) -> Iterator[Bench]:
    made = arm_build(job, desk, "champion", job.candidate)
    if made.stored.failure is not None:
        raise InfrastructureError(
            f"the selftest could not build {job.candidate.commit}, which every candidate is held"
            f" against: {made.stored.reason}"
        )
    builds: dict[Arm, StoredBuild] = {"champion": made.stored, "candidate": made.stored}
    identity = Identity(attempt=None, tries=job.tries)
    with open_bench(desk, identity, p.metrics, p.judging.settle_ms, builds) as bench:
        yield bench


def _wake(desk: Desk) -> dict[str, float | None]:
    """Return median and spread of a program that does nothing, seconds: wake-up and start."""
    with desk.stages.block(), desk.stages.slot(RUN_SLOT) as slot:
        found = [ns / 1e9 for ns in desk.stages.startup_probe_ns(slot, WAKE_PROBES)]
    return {"wake_s": median(found), "wake_sd_s": noise.robust_sd(found)}


def _is_control_found(blocks: _Blocks, robust: float | None) -> bool:
    """Return whether the rule promotes a known gain, the second time at the latest."""
    gain = max(CONTROL_EFFECTS * blocks.p.min_effect, CONTROL_SDS * (robust or 0.0))
    return any(_is_promoted(blocks, math.log1p(gain)) for _ in range(CONTROLS))


def _is_promoted(blocks: _Blocks, shift: float) -> bool:
    def next_block(_stage: JudgeStage, _number: int) -> MeasuredBlock | None:
        more = blocks.more(1)
        return _shifted(more[0], shift, blocks.p) if more else None

    steps = walk(next_block, blocks.p, 1)
    return any(stage == "confirm" and ruling.action in PROMOTES for stage, _, ruling in steps)


def _shifted(block: MeasuredBlock, shift: float, p: RuleParameters) -> MeasuredBlock:
    """Return a block as if the candidate were better by so much everywhere, a log-ratio."""
    one = p.primary
    by = shift if one.direction == "max" else -shift
    moved = {cell: ratio + by for cell, ratio in block.ln_ratio[one.metric].items()}
    shown = {
        cell: (ours * math.exp(by), theirs)
        for cell, (ours, theirs) in block.values.get(one.metric, {}).items()
    }
    return msgspec.structs.replace(
        block,
        ln_ratio=block.ln_ratio | {one.metric: moved},
        values=block.values | {one.metric: shown},
    )


def _order_effect(counted: Sequence[MeasuredBlock], p: RuleParameters) -> float | None:
    found = order_effect(order_pairs(counted, p)) if counted else None
    return None if found is None else found[0]


def _all_well(facts: Sequence[Run | Check]) -> None:
    if is_failed(facts):
        failed = next(f for f in facts if isinstance(f, Run) and f.outcome != "ok")
        raise InfrastructureError(f"the selftest failed in cell {failed.cell}: {failed.reason}")


def _of_short_cells(
    shares: Mapping[str, float], run_s: Mapping[str, float], p: RuleParameters
) -> dict[str, float | None]:
    """Return share of start-up and run time of each cell whose share is worth a word."""
    found: dict[str, float | None] = {}
    for cell, share in shares.items():
        if share > p.judging.startup_share_warn:
            found[STARTUP_SHARE_OF + cell] = share
            found[RUN_S_OF + cell] = run_s[cell]
    return found


def _run_s(facts: Sequence[Run | Check]) -> dict[str, float]:
    times: dict[str, list[int]] = {}
    for fact in facts:
        if isinstance(fact, Run) and fact.record is not None:
            times.setdefault(fact.cell, []).append(fact.record.t_ns)
    return {cell: median(ns) / 1e9 for cell, ns in times.items()}
