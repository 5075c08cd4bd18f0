"""A candidate alone: built, then run and checked once in each cell; compared with nothing."""

from collections.abc import Sequence

from thermite.judge.build.store import StoredBuild
from thermite.judge.job.bench import is_failed, open_bench
from thermite.judge.job.builds import arm_build
from thermite.judge.job.desk import Desk
from thermite.judge.job.ending import medians, plain_verdict, run_verdict
from thermite.judge.job.outcome import Identity
from thermite.judge.measure.block import Pair, broken_constraints, paired
from thermite.judge.verdict import words
from thermite.judge.verdict.params import rule_parameters
from thermite.schema.event import Verdict
from thermite.schema.job import Job
from thermite.schema.rule import RuleParameters
from thermite.schema.verdict import BLAME, VerdictKind


def judge_alone(job: Job, desk: Desk) -> Verdict | None:
    """Return `valid` or what failed; one transaction a run, with its check.

    Raises:
        InfrastructureError: the rig or the kit failed.
    """
    p = rule_parameters(job.contract, desk.kit, desk.target)
    made = arm_build(job, desk, "candidate", job.candidate)
    desk.append([made.event])
    if made.stored.failure is not None:
        kind = BLAME["candidate"][made.stored.failure]
        return plain_verdict(job, kind, [made.stored.reason or ""])
    pairs = _measured(job, desk, p, made.stored)
    return None if pairs is None else _verdict(job, desk, p, pairs)


def _measured(job: Job, desk: Desk, p: RuleParameters, build: StoredBuild) -> list[Pair] | None:
    """Return the runs in every cell up to the first that fails, None when stopping."""
    pairs: list[Pair] = []
    identity = Identity(attempt=job.attempt, tries=job.tries)
    settle_ms = p.judging.settle_ms
    with open_bench(desk, identity, p.metrics, settle_ms, {"candidate": build}) as bench:
        for cell in p.cells or desk.kit.cells:
            if desk.stopping():
                return None
            facts = bench.alone(cell)
            desk.append(facts)
            pairs += paired(facts)
            if is_failed(facts):
                break
    return pairs


def _verdict(job: Job, desk: Desk, p: RuleParameters, pairs: Sequence[Pair]) -> Verdict:
    kind, reasons = _found(p, pairs)
    notes = words.isolation_notes(desk.stages.isolation)
    return plain_verdict(job, kind, reasons, cells=medians(pairs, p), notes=notes)


def _found(p: RuleParameters, pairs: Sequence[Pair]) -> tuple[VerdictKind, list[str]]:
    failed = next((run for run, _ in pairs if run.outcome != "ok"), None)
    if failed is not None:
        return run_verdict(failed), [failed.reason or failed.outcome]
    broken = [text for _, text in broken_constraints(pairs, p.constraints, p.metrics)]
    return ("constraint_failed", broken) if broken else ("valid", [])
