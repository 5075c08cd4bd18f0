"""Make the golden goal reports: what the operator and a worker read of the same events.

PYTHONPATH=. python tests/golden/make_goal_report.py
"""

from pathlib import Path
from typing import Any, Final

from tests.campaign.events import (
    FAST,
    A,
    build,
    checked,
    created,
    lane,
    opened,
    started,
    submitted,
    told,
    verdict,
)
from thermite.agent.brief import brief
from thermite.campaign.state import Assignment
from thermite.report import goal
from thermite.schema.event import AttemptEnded

FOLDER: Final = Path(__file__).parent / "goal_report"
LONG: Final = "first " * 100 + "last " * 300
NOT_RUN: Final = "not run: it requires exact, which did not pass"
GOALS: Final[list[dict[str, Any]]] = [
    {"id": "large", "title": "large inputs", "verify": {"type": "code", "verifier": "large"}},
    {"id": "exact", "title": "exact", "weight": 2, "verify": {"type": "code", "verifier": "exact"}},
    {
        "id": "fast",
        "title": "half a second",
        "weight": 0.5,
        "verify": {"type": "metric_threshold", "metric": "s", "cells": ["small"], "max": 0.5},
    },
    {"id": "tidy", "title": "tidy", "verify": {"type": "review", "question": "?", "quorum": 2}},
]


def assignment() -> Assignment:
    """Return a campaign with one verified attempt, of each outcome one goal."""
    unmet = verdict(1, "goals_unmet", "goal exact: wrong")
    state = told(
        opened(),
        created(campaign="goal", cells=[], held_out_cells=["held"], goals=GOALS),
        lane(),
        started(1),
        submitted(1, FAST),
        build(1),
        checked(1, "large", "visible", NOT_RUN),
        checked(1, "exact", "visible", "the edge is wrong", LONG),
        checked(1, "fast", "visible"),
        checked(1, "fast", "hidden", "20 runs, median 0.61 against 0.5"),
        unmet,
        AttemptEnded(attempt=1, result="goals_unmet"),
    )
    return state.assignments[A]


def reports() -> dict[str, str]:
    """Return the golden files by their names."""
    made = assignment()
    lines = [goal.headline(made), *goal.lines(made)]
    return {"operator.txt": "\n".join(lines) + "\n", "worker.md": brief(made, 0)}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in reports().items():
        (FOLDER / name).write_text(text)
