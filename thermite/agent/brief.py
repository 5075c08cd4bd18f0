"""The brief of an attempt, made from the ledger's state. PURE.

A worker reads its task, what it may change and how its lane's last attempts went. Of a
held-out cell it reads one fixed sentence only, of gains no more than 0.1 %. Source: judging,
3.4, What workers may read; agents and control, A4.
"""

from typing import Final

from thermite.campaign import goal
from thermite.campaign.state import Assignment, Attempt

LAST_ATTEMPTS: Final = 5
"""How many of a lane's last attempts a brief tells (our figure)."""
REASON_CHARACTERS: Final = 1200
"""Kit manifest, Outcomes: a verdict's reasons in a worker's brief."""
GOAL_CHARACTERS: Final = 600
"""Kit manifest, Outcomes: each goal's reasons in the goal report that a worker gets."""
CALLS_TOOLS: Final = frozenset({"command"})
"""Backends whose workers are processes that can call tools."""
HELD_OUT_VERDICTS: Final = frozenset({"overfit", "not_confirmed"})
"""Verdicts that rest on held-out cells: their reasons are not told."""
GOAL_VERDICTS: Final = frozenset({"goals_met", "goals_unmet"})
"""Verdicts that are told goal by goal."""


def brief(assignment: Assignment, lane: int) -> str:
    """Return the brief for the next attempt of a lane, as Markdown."""
    contract = assignment.contract
    parts = [
        f"# Task\n\n{contract.task}",
        "# What you may change\n\n" + "\n".join(f"- `{p}`" for p in contract.project.editable),
        *_attempts(assignment, lane),
        *_goals(assignment),
        *_notes(assignment, lane),
        *_tools(assignment),
        "# How to finish\n\nLeave your changes in the working folder and exit.",
    ]
    return "\n\n".join(parts) + "\n"


def _attempts(assignment: Assignment, lane: int) -> list[str]:
    mine = [(n, a) for n, a in assignment.attempts.items() if a.lane == lane and a.result]
    lines = [_told(assignment, number, attempt) for number, attempt in mine[-LAST_ATTEMPTS:]]
    return ["# Your last attempts\n\n" + "\n".join(lines)] if lines else []


def _told(assignment: Assignment, number: int, attempt: Attempt) -> str:
    verdict = attempt.verdict
    if verdict is None:
        return f"- attempt {number}: {attempt.result}"
    if verdict.verdict in GOAL_VERDICTS:
        return _told_by_goals(assignment, number, attempt)
    if verdict.verdict in HELD_OUT_VERDICTS or attempt.held_out_failed:
        return f"- attempt {number}: a held-out case failed ({verdict.verdict})"
    gain = "" if verdict.gain is None else f", gain {100 * verdict.gain:.1f} %"
    return f"- attempt {number}: {verdict.verdict}{gain}" + _below("; ".join(verdict.reasons))


def _told_by_goals(assignment: Assignment, number: int, attempt: Attempt) -> str:
    standings = goal.standings(assignment, attempt)
    met, whole = (
        sum(s.weight for s in standings if s.met == "met"),
        sum(s.weight for s in standings),
    )
    unmet = [f"goal {s.id}: {'; '.join(s.reasons)}" for s in standings if s.visible is False]
    if any(s.hidden is False for s in standings):
        unmet.append(f"a held-out case failed ({attempt.result})")
    said = f"- attempt {number}: {attempt.result}, weight {met:g} of {whole:g}"
    return said + _below("; ".join(unmet))


def _goals(assignment: Assignment) -> list[str]:
    """Return the goal report: of the visible pass all, of the hidden one how many are unmet."""
    wanted = assignment.contract.goals
    number = goal.best(assignment)
    if not wanted:
        return []
    if number is None:
        lines = [f"- {one.id}: {one.title} (weight {one.weight:g})" for one in wanted]
        return ["# Goals\n\nNothing has been verified yet.\n\n" + "\n".join(lines)]
    standings = goal.standings(assignment, assignment.attempts[number])
    lines = [_goal(one) for one in standings]
    hidden = sum(one.hidden is False for one in standings)
    if any(one.hidden is not None for one in standings):
        are = "is" if hidden == 1 else "are"
        lines.append(f"\nIn the hidden pass: {hidden} of {len(wanted)} goals {are} unmet.")
    return [f"# Goals\n\nAs attempt {number} left them, the best so far:\n\n" + "\n".join(lines)]


def _goal(one: goal.Standing) -> str:
    met = {True: "met", False: "unmet", None: "not decided here"}[one.visible]
    said = f"- {one.id}: {one.title} (weight {one.weight:g}): {met}"
    return said + _below("; ".join(one.reasons), GOAL_CHARACTERS)


def _below(reasons: str, most: int = REASON_CHARACTERS) -> str:
    """Return reasons as an indented block after a line, shortened; nothing when there are none."""
    if len(reasons) > most:
        head = most // 4
        reasons = f"{reasons[:head]}…{reasons[head - most :]}"
    return f"\n\n{_fenced(reasons)}\n" if reasons else ""


def _fenced(text: str) -> str:
    shown = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
    return "\n".join(f"    {line}" for line in shown.splitlines())


def _tools(assignment: Assignment) -> list[str]:
    """Return which servers workers may call, and how they come to them."""
    lines = []
    for one in assignment.mcp_servers or []:
        if "workers" in one.agents:
            named = (one.tools or {}).get("workers")
            lines.append(f"- {one.name}: {', '.join(named) if named else 'every tool it lists'}")
    if not lines or assignment.contract.agents.workers.backend not in CALLS_TOOLS:
        return []
    return [
        "# Tools\n\nMCP servers, each tool as `server__tool`. Where they can be called is in"
        " THERMITE_MCP_URL (streamable HTTP), the bearer token in THERMITE_MCP_TOKEN.\n\n"
        + "\n".join(lines)
    ]


def _notes(assignment: Assignment, lane: int) -> list[str]:
    notes = [f"- {text}" for whom, text in assignment.steers if whom in (None, lane)]
    return ["# Notes from the operator\n\n" + "\n".join(notes)] if notes else []
