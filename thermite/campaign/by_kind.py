"""The questions that a harness asks of any campaign, answered by its kind."""

from thermite.campaign import goal, hill_climb
from thermite.campaign.state import Assignment, Attempt
from thermite.schema.event import AssignmentEnded, Verdict
from thermite.schema.strict import Strict


def end_reason(assignment: Assignment) -> str | None:
    """Return why no further attempt starts, or None."""
    if assignment.contract.campaign == "hill_climb":
        return hill_climb.end_reason(assignment)
    return goal.end_reason(assignment)


def base(assignment: Assignment) -> str:
    """Return the commit that the next attempt starts from."""
    is_climb = assignment.contract.campaign == "hill_climb"
    return assignment.champion if is_climb else goal.base(assignment)


def after_verdict(assignment: Assignment, attempt: Attempt, verdict: Verdict) -> list[Strict]:
    """Return the payloads that follow from the judge's verdict, as one transaction."""
    if assignment.contract.campaign == "hill_climb":
        return hill_climb.after_verdict(assignment, attempt, verdict)
    return goal.after_verdict(assignment, attempt, verdict)


def the_end(assignment: Assignment, reason: str, order_seed: bytes) -> AssignmentEnded:
    """Return the event that ends a campaign."""
    if assignment.contract.campaign == "hill_climb":
        return hill_climb.the_end(assignment, reason, order_seed)
    return goal.the_end(assignment, reason, order_seed)
