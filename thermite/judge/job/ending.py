"""What the facts of a job lead to: a verdict, a hold, or nothing yet.

Only facts are asked, so that a job that was killed after its last fact and before its
verdict is concluded without running anything again.
"""

from collections.abc import Mapping, Sequence
from statistics import median

from thermite.errors import InfrastructureError
from thermite.judge.job.tape import MOST_INTERRUPTED, Tape
from thermite.judge.measure.block import Pair, broken_constraints, paired, values
from thermite.judge.verdict import reason, words
from thermite.judge.verdict.rule import secondary_claims
from thermite.schema.event import Block, CellValues, Decision, Interval, Run, Verdict
from thermite.schema.job import Held, Job
from thermite.schema.judging import drops_in_words
from thermite.schema.rule import RuleParameters
from thermite.schema.stage import IsolationRecord
from thermite.schema.strict import Strict
from thermite.schema.verdict import BLAME, Arm, JudgeStage, VerdictKind


class Ending(Strict):
    """A verdict's kind and reasons; decision: the one that it rests on, if any."""

    kind: VerdictKind
    reasons: list[str]
    decision: Decision | None = None
    hold: str | None = None


def ending(tape: Tape, p: RuleParameters) -> Ending | None:
    """Return what the facts so far lead to, None while the job goes on.

    Raises:
        InfrastructureError: the champion failed a run or broke a hard constraint, or the
            rig failed in a block of this try.
    """
    return (
        _failed(tape)
        or _constrained(tape, p)
        or _cut_off(tape)
        or _decided(tape, p)
        or (_noisy(tape) if tape.is_noisy else None)
    )


def _failed(tape: Tape) -> Ending | None:
    failed = next((f for f in tape.facts if isinstance(f, Run) and f.outcome != "ok"), None)
    if failed is None:
        return None
    why = failed.reason or failed.outcome
    if failed.arm == "champion":
        raise InfrastructureError(f"the champion failed in cell {failed.cell}: {why}")
    return Ending(kind=run_verdict(failed), reasons=[why])


def run_verdict(failed: Run) -> VerdictKind:
    """Return the verdict that a failed run of a candidate leads to (Kit manifest, Outcomes)."""
    return next(kind for name, kind in BLAME["candidate"].items() if name == failed.outcome)


def _constrained(tape: Tape, p: RuleParameters) -> Ending | None:
    broken = broken_constraints(paired(tape.facts), p.constraints, p.metrics)
    theirs = [text for arm, text in broken if arm == "champion"]
    if theirs:
        raise InfrastructureError(f"the champion breaks a hard constraint: {theirs[0]}")
    ours = [text for _, text in broken]
    return Ending(kind="constraint_failed", reasons=list(dict.fromkeys(ours))) if ours else None


def _cut_off(tape: Tape) -> Ending | None:
    blocks = [fact for fact in tape.facts if isinstance(fact, Block)]
    if any(block.dropped == "infra" for block in blocks):
        raise InfrastructureError("the rig failed in a block of this try")
    if tape.interrupted <= MOST_INTERRUPTED:
        return None
    said = f"interrupted {tape.interrupted} times: the harness was ended while this ran"
    return Ending(kind="crash_infra", reasons=[said])


def _decided(tape: Tape, p: RuleParameters) -> Ending | None:
    decision = tape.last_decision
    if decision is None or decision.result is None:
        return None
    blocks = tape.counted(decision.stage)
    k = 1 if tape.started is None else tape.started.k
    said = [words.decision_reason(decision.result, decision, p, blocks, k)]
    if decision.action == "hold":
        return Ending(kind="promoted", reasons=said, decision=decision, hold=decision.result)
    return Ending(kind=_kind(decision.result), reasons=said, decision=decision)


def _kind(result: str) -> VerdictKind:
    known: dict[str, VerdictKind] = {
        "promoted": "promoted",
        "not_better": "not_better",
        "regressed": "regressed",
        "not_confirmed": "not_confirmed",
        "overfit": "overfit",
        "guard_failed": "guard_failed",
    }
    return known[result]


def _noisy(tape: Tape) -> Ending:
    said = drops_in_words([fact for fact in tape.facts if isinstance(fact, Block)])
    return Ending(kind="noisy_rig", reasons=[said])


def concluded(
    tape: Tape, end: Ending, p: RuleParameters, isolation: IsolationRecord
) -> Verdict | Held:
    """Return the verdict that an ending means, or the hold that stands before it."""
    gain, interval = words.claim(end.decision) if end.decision else (None, None)
    promoted = end.kind == "promoted"
    notes = words.isolation_notes(isolation)
    notes += words.startup_notes(p.startup_share, p, gain)
    notes += words.secondary_notes(secondary_claims(tape.counted("confirm"), p))
    if promoted and not p.held_out_cells:
        notes.append(words.NO_HELD_OUT)
    verdict = plain_verdict(
        tape.job,
        end.kind,
        end.reasons,
        cells=cell_values(tape, p),
        gain=gain,
        interval=interval,
        marks=words.marks(p, interval) if promoted and interval else [],
        notes=notes,
    )
    if end.hold is None or tape.job.released:
        return verdict
    return Held(attempt=verdict.attempt, tries=verdict.tries, reason=end.hold, promotion=verdict)


def plain_verdict(
    job: Job,
    kind: VerdictKind,
    reasons: Sequence[str],
    *,
    cells: dict[str, dict[str, CellValues]] | None = None,
    gain: float | None = None,
    interval: Interval | None = None,
    marks: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Verdict:
    """Return a verdict whose reasons, together, keep within their budget."""
    return Verdict(
        attempt=job.attempt or 0,
        tries=job.tries,
        verdict=kind,
        reasons=reason.joined_reasons([reason.escape(r) for r in reasons], reason.VERDICT_BUDGET),
        cells=cells or {},
        gain=gain,
        interval=interval,
        marks=list(marks),
        notes=list(notes),
    )


def cell_values(tape: Tape, p: RuleParameters) -> dict[str, dict[str, CellValues]]:
    """Return the medians of both arms over the last stage that has a counted block."""
    stage: JudgeStage = "confirm" if tape.counted("confirm") else "screen"
    counted = {block.block for block in tape.counted(stage)}
    pairs = [
        (run, check)
        for run, check in paired(tape.facts)
        if run.stage == stage and run.block in counted
    ]
    return medians(pairs, p)


def medians(pairs: Sequence[Pair], p: RuleParameters) -> dict[str, dict[str, CellValues]]:
    """Return the medians of each metric by cell, of the arms that have values there."""
    seen: dict[str, dict[str, dict[Arm, list[float]]]] = {}
    for run, check in pairs:
        for name, found in values(run, check, p.metrics).items():
            by_arm = seen.setdefault(run.cell, {}).setdefault(name, {})
            by_arm.setdefault(run.arm, []).append(found)
    # In the contract's order: the runs' own is drawn anew for each block.
    cells = dict.fromkeys([c for c in [*p.cells, *p.held_out_cells] if c in seen] + list(seen))
    return {
        cell: {name: _cell_values(by_arm) for name, by_arm in seen[cell].items()} for cell in cells
    }


def _cell_values(by_arm: Mapping[Arm, Sequence[float]]) -> CellValues:
    ours = median(by_arm["candidate"]) if "candidate" in by_arm else None
    theirs = median(by_arm["champion"]) if "champion" in by_arm else None
    ratio = ours / theirs if ours is not None and theirs else None
    return CellValues(candidate=ours, champion=theirs, ratio=ratio)
