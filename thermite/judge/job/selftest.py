"""The short selftest: one build against itself, so that a rig's noise has a number.

It informs: its grade stands in ledger and reports, and refuses nothing. Its runs are no
facts of an attempt, so only the event that sums them up is recorded. Source: the design
page on judging, 3.7.
"""

import math
from collections.abc import Sequence
from statistics import median
from typing import Final

from thermite.errors import InfrastructureError
from thermite.judge.build.store import StoredBuild
from thermite.judge.job.attempt import check_target
from thermite.judge.job.bench import Bench, is_failed, open_bench
from thermite.judge.job.builds import arm_build
from thermite.judge.job.desk import Desk
from thermite.judge.job.outcome import Identity
from thermite.judge.measure.block import measured, paired
from thermite.judge.measure.startup import startup_shares
from thermite.judge.verdict.coin import draw_order
from thermite.judge.verdict.order_effect import order_effect
from thermite.judge.verdict.params import rule_parameters
from thermite.judge.verdict.rule import order_pairs, stage_d
from thermite.schema.event import Check, RigSelftest, Run
from thermite.schema.job import Job
from thermite.schema.judging import RUN_S_OF, STARTUP_SHARE_OF
from thermite.schema.rule import MeasuredBlock, RuleParameters
from thermite.schema.strict import Strict
from thermite.schema.verdict import Arm

SHORT_BLOCKS: Final = 8
"""Counted blocks of a short selftest (judging, 3.7)."""
MOST_BLOCKS: Final = 3 * SHORT_BLOCKS
"""Blocks in all, disturbed ones included; a rig that needs more is noisy (our bound)."""
QUIET: Final = 0.006
USABLE: Final = 0.02
"""Robust sd of D up to which a rig is graded so (judging, 3.7)."""
NORMAL: Final = 1.4826
"""Median absolute deviation to standard deviation of a normal (hyperfine, outlier_detection)."""


class _Seen(Strict):
    """What the selftest's blocks came to."""

    blocks: list[MeasuredBlock]
    dropped: int
    shares: dict[str, float]
    run_s: dict[str, float]


def selftest(job: Job, desk: Desk, *, nonce: str) -> RigSelftest:
    """Measure the job's candidate against itself in the contract's cells.

    Args:
        job: its candidate is both arms; its order_seed belongs to the nonce.
        nonce: hex of the 32 random bytes that the order seed was made from.

    Raises:
        InfrastructureError: the build, a run or a check failed, or the rig did.
    """
    check_target(desk)
    p = rule_parameters(job.contract, desk.kit, desk.target)
    seen = _measured(job, desk, p)
    ds = [stage_d("selftest", block, p) for block in seen.blocks]
    figures = _figures(ds, seen, p)
    return RigSelftest(
        mode="short",
        kit=job.kit,
        nonce=nonce,
        order_seed=job.order_seed,
        blocks=ds,
        figures=figures,
        grade=grade(figures["robust_sd"]),
        sees=None,
        biased=False,
        insensitive=None,
    )


def grade(robust_sd: float | None) -> str:
    """Return the grade of a rig by its robust standard deviation of D."""
    if robust_sd is None or robust_sd > USABLE:
        return "noisy"
    return "quiet" if robust_sd <= QUIET else "usable"


def robust_sd(ds: Sequence[float]) -> float | None:
    """Return the standard deviation of D by its median absolute deviation, None if none."""
    if not ds:
        return None
    middle = median(ds)
    return NORMAL * median(abs(d - middle) for d in ds)


def _measured(job: Job, desk: Desk, p: RuleParameters) -> _Seen:
    made = arm_build(job, desk, "champion", job.candidate)
    if made.stored.failure is not None:
        raise InfrastructureError(
            f"the selftest could not build {job.candidate.commit}: {made.stored.reason}"
        )
    builds: dict[Arm, StoredBuild] = {"champion": made.stored, "candidate": made.stored}
    identity = Identity(attempt=None, tries=job.tries)
    with open_bench(desk, identity, p.metrics, p.judging.settle_ms, builds) as bench:
        return _blocks(job, bench, p)


def _blocks(job: Job, bench: Bench, p: RuleParameters) -> _Seen:
    seed = bytes.fromhex(job.order_seed)
    facts, probes = bench.warm_up("selftest", p.cells, p.judging.warmup_runs)
    _all_well(facts)
    shares, run_s = startup_shares(facts, probes), _run_s(facts)
    blocks: list[MeasuredBlock] = []
    number = 0
    while len(blocks) < SHORT_BLOCKS and number < MOST_BLOCKS:
        turns = draw_order(seed, 0, "selftest", number, p.cells)
        facts = bench.block("selftest", number, turns)
        _all_well(facts)
        if not any(isinstance(fact, Run) and fact.flags for fact in facts):
            blocks.append(measured("selftest", number, paired(facts), p.metrics))
        number += 1
    return _Seen(blocks=blocks, dropped=number - len(blocks), shares=shares, run_s=run_s)


def _all_well(facts: Sequence[Run | Check]) -> None:
    if is_failed(facts):
        failed = next(f for f in facts if isinstance(f, Run) and f.outcome != "ok")
        raise InfrastructureError(f"the selftest failed in cell {failed.cell}: {failed.reason}")


def _figures(ds: Sequence[float], seen: _Seen, p: RuleParameters) -> dict[str, float | None]:
    found = order_effect(order_pairs(seen.blocks, p)) if seen.blocks else None
    total = len(seen.blocks) + seen.dropped
    return {
        "robust_sd": robust_sd(ds),
        "order_effect": None if found is None else found[0],
        "discard_share": seen.dropped / total,
        "startup_share": max(seen.shares.values(), default=None),
        "mean": math.fsum(ds) / len(ds) if ds else None,
        **_of_short_cells(seen, p),
    }


def _of_short_cells(seen: _Seen, p: RuleParameters) -> dict[str, float]:
    """Return share of start-up and run time of each cell whose share is worth a word."""
    found = {}
    for cell, share in seen.shares.items():
        if share > p.judging.startup_share_warn:
            found[STARTUP_SHARE_OF + cell] = share
            found[RUN_S_OF + cell] = seen.run_s[cell]
    return found


def _run_s(facts: Sequence[Run | Check]) -> dict[str, float]:
    times: dict[str, list[int]] = {}
    for fact in facts:
        if isinstance(fact, Run) and fact.record is not None:
            times.setdefault(fact.cell, []).append(fact.record.t_ns)
    return {cell: median(ns) / 1e9 for cell, ns in times.items()}
