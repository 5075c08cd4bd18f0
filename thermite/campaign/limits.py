"""What ends a campaign of any kind: its budget, a command, a rig that fails again and again.

Source: the reference page "Contract", `budget`; known faults, B11.
"""

from typing import Final

from thermite.campaign.state import Assignment

INFRA_IN_A_ROW: Final = 3
"""Attempts in a row that end as crash_infra before the campaign stops: the kit or the rig is
broken, and a loop would only eat the budget (known faults, B11; our figure)."""


def reached(assignment: Assignment) -> str | None:
    """Return the command or the limit that lets no further attempt start, or None."""
    budget, spent = assignment.contract.budget, assignment.spent
    if assignment.stop_wanted is not None:
        return "stopped"
    if counted_attempts(assignment) >= budget.attempts:
        return "budget: attempts"
    for name in ("wall_s", "judge_s", "tokens", "usd"):
        limit = getattr(budget, name)
        if limit is not None and spent.get(name, 0.0) >= limit:
            return f"budget: {name}"
    return None


def left(assignment: Assignment, name: str) -> float | None:
    """Return what is left of a limit of the budget, 0 at least; None: there is no such limit."""
    limit = getattr(assignment.contract.budget, name)
    if limit is None:
        return None
    return max(0.0, float(limit) - assignment.spent.get(name, 0.0))


def broken(assignment: Assignment) -> str | None:
    """Return that the rig or the kit is broken, or None."""
    ended = [a for a in assignment.attempts.values() if a.status == "ended"]
    last = ended[-INFRA_IN_A_ROW:]
    if len(last) == INFRA_IN_A_ROW and all(a.result == "crash_infra" for a in last):
        return "infrastructure"
    return None


def counted_attempts(assignment: Assignment) -> int:
    """Return how many attempts the budget counts: all but those that the rig's end cut off."""
    return sum(attempt.result != "killed" for attempt in assignment.attempts.values())
