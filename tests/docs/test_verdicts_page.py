"""The page "Verdicts and states" says what the code says."""

import re
from pathlib import Path
from typing import get_args

from thermite.campaign.state import AttemptStatus
from thermite.campaign.table import ATTEMPT
from thermite.judge.verdict import words
from thermite.schema.event import TAG_OF
from thermite.schema.verdict import ANSWERS_A_DUPLICATE, COUNTS_AGAINST, VerdictKind

PAGE = (Path(__file__).parents[2] / "docs/reference/verdicts.md").read_text()
ROWS = dict(re.findall(r"^\| `(\w+)` \| [^|]* \| ([^|]*?) \| [^|]* \|$", PAGE, re.MULTILINE))
OF_GOALS = {"goals_met", "goals_unmet"}


def test_every_verdict_of_a_hill_climb_has_its_row() -> None:
    assert set(ROWS) == set(get_args(VerdictKind)) - OF_GOALS


def test_what_counts_against_a_candidate_is_said() -> None:
    against = {kind for kind, column in ROWS.items() if column == "yes"}
    assert against == set(COUNTS_AGAINST) - OF_GOALS


def test_what_answers_no_duplicate_is_said() -> None:
    (sentence,) = re.findall(r"A duplicate is answered[^.]*\.", PAGE)
    named = set(re.findall(r"`(\w+)`", sentence))
    assert named == set(get_args(VerdictKind)) - set(ANSWERS_A_DUPLICATE)


def test_marks_and_notes_are_quoted_as_they_are() -> None:
    assert f"`{words.PLACEMENT_LUCK}`" in PAGE
    assert f"`{words.NO_HELD_OUT}`" in PAGE


def test_every_state_has_its_row_and_what_may_follow() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| [^|]* \| ([^|]*?) ?\|$", PAGE.split("## States")[1], re.MULTILINE
    )
    told = {state: set(re.findall(r"`(\w+)`", events)) for state, events in rows}
    assert set(told) == set(get_args(AttemptStatus))
    for state, events in told.items():
        may = {TAG_OF[event] for event, states in ATTEMPT.items() if state in states}
        assert events == may, state
