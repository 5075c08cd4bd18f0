"""What a hill climb does next: pure answers to the questions that the harness asks.

An attempt is judged against the champion; the champion moves only by `champion_promoted`;
the campaign ends on its budget, a stop rule or a command, and the re-anchor at the end gives
the headline gain. Source: the reference page "Contract", Campaign kinds; judging, 3.2 and 3.9.
"""

import math
from typing import Final

from thermite.campaign import attempts, limits
from thermite.campaign.review import REVIEW
from thermite.campaign.state import Assignment, Attempt, ReAnchor
from thermite.schema.event import (
    AssignmentEnded,
    AttemptEnded,
    ChampionPromoted,
    Hold,
    HoldResolved,
    JudgeStarted,
    Verdict,
)
from thermite.schema.job import Held
from thermite.schema.strict import Strict

RE_ANCHOR_EVERY: Final = 10
"""Promotions between two re-anchors (judging, 3.2)."""


def end_reason(assignment: Assignment) -> str | None:
    """Return why no further attempt starts, or None."""
    return limits.reached(assignment) or _stop_rule(assignment) or limits.broken(assignment)


def _stop_rule(assignment: Assignment) -> str | None:
    stop = assignment.contract.stop
    if stop.gain is not None and total_gain(assignment) >= stop.gain:
        return "stop: gain"
    if stop.stale_attempts is not None and stale_attempts(assignment) >= stop.stale_attempts:
        return "stop: stale_attempts"
    return None


def total_gain(assignment: Assignment) -> float:
    """Return the gain that the promotions claim together, a fraction."""
    return math.prod(1.0 + promotion.gain for promotion in assignment.promotions) - 1.0


def stale_attempts(assignment: Assignment) -> int:
    """Return how many attempts ended since the last promotion."""
    last = assignment.promotions[-1].attempt if assignment.promotions else 0
    return attempts.ended_since(assignment, last)


def is_stale(assignment: Assignment, attempt: Attempt) -> bool:
    """Return whether the attempt was measured against another champion than the present one.

    It goes back to screening then, under a fresh index (judging, 3.9).
    """
    started = next((f for f in attempt.facts if isinstance(f, JudgeStarted)), None)
    return started is not None and started.champion != assignment.champion


def after_verdict(assignment: Assignment, attempt: Attempt, verdict: Verdict) -> list[Strict]:
    """Return the payloads that follow from a verdict, the verdict first, as one transaction."""
    if attempts.goes_back(assignment, attempt, verdict):
        return [verdict]
    follow: list[Strict] = [verdict]
    if verdict.verdict == "promoted":
        follow.append(_promotion(assignment, attempt, verdict))
    return [*follow, AttemptEnded(attempt=verdict.attempt, result=verdict.verdict)]


def _promotion(assignment: Assignment, attempt: Attempt, verdict: Verdict) -> ChampionPromoted:
    if attempt.commit is None or verdict.gain is None or verdict.interval is None:
        raise RuntimeError(f"attempt {verdict.attempt} is promoted without a measured gain")
    return ChampionPromoted(
        attempt=verdict.attempt,
        commit=attempt.commit,
        previous=assignment.champion,
        gain=verdict.gain,
        interval=verdict.interval,
        marks=verdict.marks,
    )


def re_anchor_due(assignment: Assignment, *, ending: bool) -> int | None:
    """Return the number of the re-anchor that is due now, or None.

    After every ten promotions and, when there was any promotion, at the end.
    """
    promotions = len(assignment.promotions)
    done = [r for r in assignment.re_anchors if r.decision is not None]
    anchored = done[-1].promotions if done else 0
    due = promotions > anchored if ending else promotions - anchored >= RE_ANCHOR_EVERY
    if not due:
        return None
    known = assignment.re_anchors
    return known[-1].number if known and known[-1].decision is None else len(known) + 1


def headline(assignment: Assignment) -> ReAnchor | None:
    """Return the finished re-anchor that gives the campaign's gain, or None."""
    done = [r for r in assignment.re_anchors if r.decision is not None]
    if not done or done[-1].promotions != len(assignment.promotions):
        return None
    return done[-1]


def open_holds(assignment: Assignment) -> list[int]:
    """Return the attempts that wait for a person."""
    held = ((number, a) for number, a in assignment.attempts.items() if a.status == "held")
    return [number for number, attempt in held if attempt.hold != REVIEW]


def hold(held: Held) -> Hold:
    """Return the event of a promotion that waits for a person, with what the judge found."""
    beside = f"held for {held.reason}: "
    said = [one.removeprefix(beside) for one in held.promotion.reasons]
    return Hold(attempt=held.attempt, reason=held.reason, reasons=said)


def hold_ran_out(assignment: Assignment, number: int) -> list[Strict]:
    """Return the payloads that end a hold that nobody released, as one transaction."""
    attempt = assignment.attempts[number]
    said = f"held for {attempt.hold}, nobody released it"
    verdict = attempts.unmeasured(attempt, "not_confirmed", said, *attempt.hold_reasons)
    resolved = HoldResolved(attempt=number, action="expired", by="time")
    return [resolved, verdict, AttemptEnded(attempt=number, result=verdict.verdict)]


def the_end(assignment: Assignment, reason: str, order_seed: bytes) -> AssignmentEnded:
    """Return the event that ends a campaign; its gain is the last re-anchor's claim."""
    anchor = headline(assignment)
    claim = anchor.decision if anchor is not None else None
    return AssignmentEnded(
        reason=reason,
        champion=assignment.champion,
        gain=None if claim is None else math.expm1(claim.T),
        interval=None if claim is None else (_fraction(claim.lcb), _fraction(claim.ucb)),
        order_seed=order_seed.hex(),
    )


def _fraction(log_ratio: float | None) -> float | None:
    return None if log_ratio is None else math.expm1(log_ratio)
