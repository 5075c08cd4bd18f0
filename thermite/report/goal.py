"""A goal campaign's report: how a candidate stands to each goal, in the contract's order. PURE.

This is the operator's: it has the reasons of the hidden pass too. What a worker reads is
`thermite.agent.brief`. Source: the reference page "Kit manifest", Verifiers and Outcomes.
"""

import math
from typing import Any, Final

import msgspec

from thermite.campaign import goal
from thermite.campaign.goal import Standing
from thermite.campaign.state import Assignment

SIGN: Final = {"met": "met  ", "unmet": "unmet", "open": "open "}


def report(assignment: Assignment) -> dict[str, Any] | None:
    """Return the best candidate's goals as plain values, None in a campaign without goals."""
    if not assignment.contract.goals:
        return None
    number = goal.best(assignment)
    attempt = None if number is None else assignment.attempts[number]
    standings = [] if attempt is None else goal.standings(assignment, attempt)
    return {
        "attempt": number,
        "name": None if attempt is None else attempt.started.proposal,
        "commit": None if attempt is None else attempt.commit,
        "met": sum(one.met == "met" for one in standings),
        "of": len(assignment.contract.goals),
        "weight": math.fsum(one.weight for one in standings if one.met == "met"),
        "of_weight": math.fsum(one.weight for one in assignment.contract.goals),
        "goals": [msgspec.to_builtins(one) for one in standings],
    }


def headline(assignment: Assignment) -> str:
    """Return how far the best candidate is, in one sentence."""
    told = report(assignment)
    if told is None or told["attempt"] is None:
        return "no candidate has been verified yet"
    name = told["name"] or f"attempt {told['attempt']}"
    return (
        f"{name} is the best: it meets {told['met']} of {told['of']} goals, weight"
        f" {told['weight']:g} of {told['of_weight']:g}; commit {str(told['commit'])[:12]}"
    )


def lines(assignment: Assignment) -> list[str]:
    """Return the best candidate's goals for a person, each with why it is unmet."""
    number = goal.best(assignment)
    if number is None:
        return []
    found = goal.standings(assignment, assignment.attempts[number])
    return [line for one in found for line in _lines(one)]


def weight(assignment: Assignment, number: int) -> str:
    """Return the weight that an attempt meets, of what there is; empty before it is verified."""
    attempt = assignment.attempts[number]
    if not attempt.checked and not attempt.reviewed:
        return ""
    whole = math.fsum(one.weight for one in assignment.contract.goals)
    return f"weight {goal.met_weight(assignment, attempt):g} of {whole:g}"


def _lines(one: Standing) -> list[str]:
    head = f"{SIGN[one.met]}  {one.id} (weight {one.weight:g}): {one.title}"
    found = [*one.reasons, *(f"on held-out cells: {reason}" for reason in one.hidden_reasons)]
    return [head, *(f"         {line}" for reason in found for line in reason.splitlines())]
