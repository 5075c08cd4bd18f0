"""What a goal campaign does next, and how far its candidates are: pure answers from the state.

A goal is met when it is met in every pass that has cells of it, the visible and the hidden
one; a review goal when its quorum says so. The best candidate is the one that meets the most
weight, the earlier one when equal; the next attempt starts from it. Source: the reference page
"Contract", Campaign kinds.
"""

import math
from typing import Literal, TypeAlias

from thermite.campaign import attempts, limits, review
from thermite.campaign.state import Assignment, Attempt
from thermite.schema.contract import Goal, ReviewGoal
from thermite.schema.event import AssignmentEnded, AttemptEnded, Hold, Verdict
from thermite.schema.strict import Strict

ALL_MET = "goals met"
"""Why a campaign ends when one candidate meets every goal."""

Met: TypeAlias = Literal["met", "unmet", "open"]


class Standing(Strict):
    """How one attempt stands to one goal.

    visible, hidden: each pass, None where it has no cell of the goal or was not reached;
    met: of both together, or the quorum; reasons: of the visible pass or the votes;
    hidden_reasons: for the operator alone.
    """

    id: str
    title: str
    weight: float
    met: Met
    visible: bool | None
    hidden: bool | None
    reasons: list[str]
    hidden_reasons: list[str]


def standings(assignment: Assignment, attempt: Attempt) -> list[Standing]:
    """Return how an attempt stands to each goal, in the contract's order."""
    return [_standing(goal, attempt) for goal in assignment.contract.goals]


def met_weight(assignment: Assignment, attempt: Attempt) -> float:
    """Return the weight of the goals that an attempt meets."""
    return math.fsum(s.weight for s in standings(assignment, attempt) if s.met == "met")


def best(assignment: Assignment) -> int | None:
    """Return the number of the best verified attempt, None before the first."""
    found: tuple[float, int] | None = None
    for number, attempt in assignment.attempts.items():
        if attempt.checked or attempt.reviewed:
            weight = met_weight(assignment, attempt)
            if found is None or weight > found[0]:
                found = weight, number
    return None if found is None else found[1]


def base(assignment: Assignment) -> str:
    """Return the commit that the next attempt starts from."""
    number = best(assignment)
    attempt = None if number is None else assignment.attempts[number]
    if attempt is None or attempt.commit is None or met_weight(assignment, attempt) == 0.0:
        return assignment.project.commit
    return attempt.commit


def end_reason(assignment: Assignment) -> str | None:
    """Return why no further attempt starts, or None."""
    if any(a.result == "goals_met" for a in assignment.attempts.values()):
        return ALL_MET
    return limits.reached(assignment) or _stale(assignment) or limits.broken(assignment)


def _stale(assignment: Assignment) -> str | None:
    most = assignment.contract.stop.stale_attempts
    if most is None or attempts.ended_since(assignment, best(assignment) or 0) < most:
        return None
    return "stop: stale_attempts"


def after_verdict(assignment: Assignment, attempt: Attempt, verdict: Verdict) -> list[Strict]:
    """Return the payloads that follow from the judge's word, as one transaction.

    People are asked only about a candidate that meets everything a machine can check.
    """
    if attempts.goes_back(assignment, attempt, verdict):
        return [verdict]
    if verdict.verdict == "goals_met" and review.questions(assignment):
        return [Hold(attempt=verdict.attempt, reason=review.REVIEW)]
    return [verdict, AttemptEnded(attempt=verdict.attempt, result=verdict.verdict)]


def the_end(assignment: Assignment, reason: str, order_seed: bytes) -> AssignmentEnded:
    """Return the event that ends a campaign; its champion is the best candidate."""
    return AssignmentEnded(
        reason=reason,
        champion=base(assignment),
        gain=None,
        interval=None,
        order_seed=order_seed.hex(),
    )


def _standing(goal: Goal, attempt: Attempt) -> Standing:
    if isinstance(goal.verify, ReviewGoal):
        decided = attempt.reviewed.get(goal.id)
        met: Met = "open" if decided is None else "met" if decided else "unmet"
        return Standing(
            id=goal.id,
            title=goal.title,
            weight=goal.weight,
            met=met,
            visible=decided,
            hidden=None,
            reasons=[] if decided else review.votes_in_words(goal.id, goal.verify, attempt),
            hidden_reasons=[],
        )
    visible = attempt.checked.get((goal.id, "visible"))
    hidden = attempt.checked.get((goal.id, "hidden"))
    passes = [one.met for one in (visible, hidden) if one is not None]
    return Standing(
        id=goal.id,
        title=goal.title,
        weight=goal.weight,
        met="open" if not passes else "met" if all(passes) else "unmet",
        visible=None if visible is None else visible.met,
        hidden=None if hidden is None else hidden.met,
        reasons=[] if visible is None else list(visible.reasons),
        hidden_reasons=[] if hidden is None else list(hidden.reasons),
    )
