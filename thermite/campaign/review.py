"""Review goals: what people are asked about a candidate, and what their votes come to.

A goal is decided when as many voters as its quorum say the same; one key has one vote. While
votes are missing the attempt is held for `review`, which stops no lane. Source: the reference
page "Contract", Campaign kinds and Commands; agents and control, A2.
"""

from typing import Final

from thermite.campaign import attempts
from thermite.campaign.state import Assignment, Attempt
from thermite.schema.command import VoteBody
from thermite.schema.contract import ReviewGoal
from thermite.schema.event import AttemptEnded, ReviewResult, ReviewVote
from thermite.schema.strict import Strict

REVIEW: Final = "review"
"""Why an attempt is held that waits for votes."""


def questions(assignment: Assignment) -> dict[str, ReviewGoal]:
    """Return the review goals of a campaign by their ids, in the contract's order."""
    goals = assignment.contract.goals
    return {goal.id: goal.verify for goal in goals if isinstance(goal.verify, ReviewGoal)}


def waiting(assignment: Assignment) -> list[int]:
    """Return the attempts that wait for votes."""
    held = ((number, a) for number, a in assignment.attempts.items() if a.status == "held")
    return [number for number, attempt in held if attempt.hold == REVIEW]


def after_vote(assignment: Assignment, body: VoteBody, voter: str) -> list[Strict]:
    """Return the payloads that follow from a vote: it, what it decides, and what that ends.

    Args:
        body: about an attempt that waits, and a goal of it that is not decided.
        voter: the id of the key that signed it.
    """
    attempt, goal = assignment.attempts[body.attempt], questions(assignment)[body.goal]
    vote = ReviewVote(
        attempt=body.attempt, goal=body.goal, voter=voter, vote=body.vote, reason=body.reason
    )
    cast = [*attempt.votes.get(body.goal, []), vote]
    alike = sum(one.vote == body.vote for one in cast)
    if alike < goal.quorum:
        return [vote]
    result = ReviewResult(
        attempt=body.attempt,
        goal=body.goal,
        votes=len(cast),
        quorum=goal.quorum,
        met=body.vote == "met",
    )
    decided = {**attempt.reviewed, body.goal: result.met}
    if any(name not in decided for name in questions(assignment)):
        return [vote, result]
    votes = {**attempt.votes, body.goal: cast}
    unmet = [_unmet(name, votes[name]) for name in questions(assignment) if not decided[name]]
    verdict = attempts.unmeasured(attempt, "goals_unmet" if unmet else "goals_met", *unmet)
    return [vote, result, verdict, AttemptEnded(attempt=body.attempt, result=verdict.verdict)]


def not_decided(assignment: Assignment, number: int) -> list[Strict]:
    """Return the payloads that end an attempt whose votes never came, as one transaction."""
    attempt = assignment.attempts[number]
    open_ = [
        f"goal {name}: {'; '.join(votes_in_words(name, goal, attempt))}, and the campaign ended"
        for name, goal in questions(assignment).items()
        if not attempt.reviewed.get(name)
    ]
    verdict = attempts.unmeasured(attempt, "goals_unmet", *open_)
    return [verdict, AttemptEnded(attempt=number, result=verdict.verdict)]


def votes_in_words(name: str, goal: ReviewGoal, attempt: Attempt) -> list[str]:
    """Return how a goal's votes stand: why it is not met, or what is still missing."""
    votes = attempt.votes.get(name, [])
    if attempt.reviewed.get(name) is False:
        return [one.reason for one in votes if one.vote == "unmet"]
    met = sum(one.vote == "met" for one in votes)
    return [f"{met} of {goal.quorum} votes that it is met, {len(votes) - met} that it is not"]


def _unmet(name: str, votes: list[ReviewVote]) -> str:
    said = "; ".join(one.reason for one in votes if one.vote == "unmet" and one.reason)
    return f"goal {name}: voted unmet" + (f": {said}" if said else "")
