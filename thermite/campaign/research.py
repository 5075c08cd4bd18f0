"""What a research campaign does next: no kit and no judge, but commits and people's votes.

A candidate waits for its votes when the contract has goals, and is kept when it has none.
Ends and the best candidate are a goal campaign's. Source: the reference page "Contract",
Campaign kinds.
"""

from thermite.campaign import attempts, review
from thermite.campaign.state import Assignment, Attempt
from thermite.schema.event import AttemptEnded, Hold
from thermite.schema.strict import Strict

KEPT = "kept: the contract has no goal to vote on"
"""Reason of a candidate that nobody is asked about."""


def after_submission(assignment: Assignment, attempt: Attempt) -> list[Strict]:
    """Return the payloads that follow from a candidate, as one transaction."""
    number = attempt.started.attempt
    if review.questions(assignment):
        return [Hold(attempt=number, reason=review.REVIEW)]
    verdict = attempts.unmeasured(attempt, "valid", KEPT)
    return [verdict, AttemptEnded(attempt=number, result=verdict.verdict)]
