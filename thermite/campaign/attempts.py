"""What is the same of an attempt in every kind of campaign: returns, duplicates, bare verdicts."""

from typing import Final

from thermite.campaign.state import Assignment, Attempt
from thermite.schema.event import Verdict
from thermite.schema.verdict import VerdictKind

NOISY_RETURNS: Final = 3
"""Returns to the queue for disturbed blocks before `noisy_rig` stands (judging, 3.1)."""


def duplicate_of(assignment: Assignment, tree: str) -> int | None:
    """Return the attempt that judged this tree already, or None."""
    return assignment.answered.get(tree)


def ended_since(assignment: Assignment, number: int) -> int:
    """Return how many attempts after this one have ended."""
    return sum(a.status == "ended" for n, a in assignment.attempts.items() if n > number)


def goes_back(assignment: Assignment, attempt: Attempt, verdict: Verdict) -> bool:
    """Return whether the judge takes the attempt again after this verdict.

    A failure of the rig, the kit or the champion is tried once more (Kit manifest, Outcomes),
    disturbed blocks three times. An attempt that was interrupted too often is not.
    """
    if verdict.verdict == "crash_infra" and attempt.interrupted <= NOISY_RETURNS:
        return attempt.infra_returns < assignment.contract.judging.infra_retries
    return verdict.verdict == "noisy_rig" and attempt.noisy_returns < NOISY_RETURNS


def unmeasured(attempt: Attempt, kind: VerdictKind, *reasons: str) -> Verdict:
    """Return a verdict that rests on no number of this try."""
    return Verdict(
        attempt=attempt.started.attempt,
        tries=attempt.tries,
        verdict=kind,
        reasons=list(reasons),
        cells={},
        gain=None,
        interval=None,
        marks=[],
        notes=[],
    )
