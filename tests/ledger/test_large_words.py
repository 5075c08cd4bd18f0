"""The longest words that an event may hold go in and come back whole, and cost a row no more."""

import time
from pathlib import Path

import pytest

from tests.ledger.facts import Facts
from tests.requirement import shows
from thermite.judge.verdict import reason
from thermite.ledger.append import Ledger
from thermite.ledger.replay import recorded
from thermite.schema.judging import GoalChecked

WIDE = "\N{GOTHIC LETTER HWAIR}"
"""One character, four bytes."""


@pytest.mark.parametrize(
    ("length", "kept"),
    [
        pytest.param(4000, WIDE * 4000, id="L12-exactly the budget"),
        pytest.param(4001, f"{WIDE * 1000}…{WIDE * 3000}", id="L12-one more"),
    ],
)
def test_a_reason_is_cut_by_characters_and_not_by_bytes(
    ledger: Ledger, facts: Facts, path: Path, length: int, kept: str
) -> None:
    told = reason.joined_reasons([WIDE * length], reason.VERDICT_BUDGET)
    ledger.append([facts.verdict(reasons=told)])
    *_, row = recorded(path)
    assert row.event.data.reasons == [kept]


@shows("L12")
def test_a_log_of_nuls_is_shown_by_its_end(ledger: Ledger, facts: Facts, path: Path) -> None:
    told = reason.build_failed(2, bytes(64 << 10))
    assert told == f"build: build failed (exit 2)\n{(chr(92) + 'x00') * 375}"
    ledger.append([facts.verdict(verdict="invalid", reasons=[told])])
    *_, row = recorded(path)
    assert row.event.data.reasons == [told]


@shows("L12")
def test_a_pass_over_500_goals_is_one_transaction_and_costs_each_event_the_same(
    ledger: Ledger, facts: Facts, path: Path
) -> None:
    def checked(number: int) -> GoalChecked:
        words = [f"{number}: {WIDE * 590}"]
        return GoalChecked(
            attempt=1, tries=1, goal=f"goal-{number}", passed="visible", met=False, reasons=words
        )

    took = []
    for _ in range(8):
        begun = time.perf_counter()
        seqs = ledger.append([facts.event(checked(number)) for number in range(500)])
        took.append(time.perf_counter() - begun)
        assert len(seqs) == 500
    assert min(took[4:]) < 5 * min(took[:4]), took
    assert sum(1 for _ in recorded(path)) == 1 + 8 * 500
