"""The brief of an attempt, made from the ledger's state. PURE.

A worker reads its task, what it may change and how its lane's last attempts went. Of a
held-out cell it reads one fixed sentence only, of gains no more than 0.1 %. Source: judging,
3.4, What workers may read; agents and control, A4.
"""

from typing import Final

from thermite.campaign.state import Assignment, Attempt

LAST_ATTEMPTS: Final = 5
"""How many of a lane's last attempts a brief tells (our figure)."""
REASON_CHARACTERS: Final = 1200
"""Kit manifest, Outcomes: a verdict's reasons in a worker's brief."""
HELD_OUT_VERDICTS: Final = frozenset({"overfit", "not_confirmed"})
"""Verdicts that rest on held-out cells: their reasons are not told."""


def brief(assignment: Assignment, lane: int) -> str:
    """Return the brief for the next attempt of a lane, as Markdown."""
    contract = assignment.contract
    parts = [
        f"# Task\n\n{contract.task}",
        "# What you may change\n\n" + "\n".join(f"- `{p}`" for p in contract.project.editable),
        *_attempts(assignment, lane),
        *_notes(assignment, lane),
        "# How to finish\n\nLeave your changes in the working folder and exit.",
    ]
    return "\n\n".join(parts) + "\n"


def _attempts(assignment: Assignment, lane: int) -> list[str]:
    mine = [(n, a) for n, a in assignment.attempts.items() if a.lane == lane and a.result]
    lines = [_told(number, attempt) for number, attempt in mine[-LAST_ATTEMPTS:]]
    return ["# Your last attempts\n\n" + "\n".join(lines)] if lines else []


def _told(number: int, attempt: Attempt) -> str:
    verdict = attempt.verdict
    if verdict is None:
        return f"- attempt {number}: {attempt.result}"
    if verdict.verdict in HELD_OUT_VERDICTS or attempt.held_out_failed:
        return f"- attempt {number}: a held-out case failed ({verdict.verdict})"
    gain = "" if verdict.gain is None else f", gain {100 * verdict.gain:.1f} %"
    reasons = _short("; ".join(verdict.reasons))
    return f"- attempt {number}: {verdict.verdict}{gain}" + (f"\n\n{reasons}\n" if reasons else "")


def _short(text: str) -> str:
    if len(text) <= REASON_CHARACTERS:
        return _fenced(text) if text else ""
    head = REASON_CHARACTERS // 4
    return _fenced(f"{text[:head]}…{text[head - REASON_CHARACTERS :]}")


def _fenced(text: str) -> str:
    shown = "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
    return "\n".join(f"    {line}" for line in shown.splitlines())


def _notes(assignment: Assignment, lane: int) -> list[str]:
    notes = [f"- {text}" for whom, text in assignment.steers if whom in (None, lane)]
    return ["# Notes from the operator\n\n" + "\n".join(notes)] if notes else []
