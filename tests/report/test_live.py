"""A campaign as it runs: each line reads on, with an interval and without."""

from pathlib import Path

import msgspec

from thermite.campaign.fold import fold
from thermite.campaign.state import State
from thermite.ledger.replay import recorded
from thermite.report import live
from thermite.report.campaign import status, status_lines
from thermite.schema.event import AssignmentEnded

LEDGER = Path(__file__).parents[1] / "golden/promotion/ledger.db"


def test_each_line_is_whole_with_an_interval_and_without() -> None:
    state, told = State(), []
    for row in recorded(LEDGER):
        fold(state, row.seq, row.event)
        told.append(live.line(state, row.event))
    said = [line for line in told if line is not None]
    promoted = "01-fast: promoted +25.0 % [+24.7 %, +25.3 %]: better: 25.01 % measured in 10 blocks"
    null = "02-same: not_better +0.0 %: no gain of 3 % was shown: 0.02 % measured in 5 blocks"
    assert promoted in said
    assert null in said
    assert not [line for line in said if " :" in line or line.endswith(" ")]


def test_a_champion_that_gained_nothing_was_measured_again_all_the_same() -> None:
    state = State()
    *_, last = recorded(LEDGER)
    assert isinstance(last.event.data, AssignmentEnded)
    nothing = msgspec.structs.replace(last.event.data, gain=0.0, interval=None)
    event = msgspec.structs.replace(last.event, data=nothing)
    told = live.line(state, event)
    assert told == "campaign ended (nothing left to propose): +0.0 % measured again"


def test_an_end_that_quotes_a_compiler_stays_on_its_line() -> None:
    state = State()
    *before, last = recorded(LEDGER)
    for row in before:
        fold(state, row.seq, row.event)
    assert isinstance(last.event.data, AssignmentEnded)
    why = "infrastructure: build failed (exit 1)\nmatmul.c:5: error\n"
    event = msgspec.structs.replace(
        last.event, data=msgspec.structs.replace(last.event.data, reason=why, gain=None)
    )
    said = "infrastructure: build failed (exit 1) matmul.c:5: error"
    assert live.line(state, event) == f"campaign ended ({said})"
    fold(state, last.seq, event)
    told = status(state, wal_bytes=0, served=False, as_of=None)
    assert f"              {said}" in status_lines(told)
