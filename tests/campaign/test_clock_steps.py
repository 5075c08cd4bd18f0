"""What a ledger means is the order of its events: no time stamp takes part."""

from datetime import datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from thermite.campaign.fold import fold
from thermite.campaign.state import State
from thermite.ledger.replay import recorded
from thermite.schema.event import Event

GOLDEN = Path(__file__).parents[1] / "golden/promotion/ledger.db"


def folded(events: list[Event]) -> State:
    state = State()
    for seq, event in enumerate(events, 1):
        fold(state, seq, event)
    return state


@pytest.mark.parametrize(
    "step",
    [
        pytest.param(timedelta(hours=-7), id="L6-back"),
        pytest.param(timedelta(days=1), id="L6-forth"),
    ],
)
def test_a_clock_step_in_the_middle_of_a_campaign_changes_nothing(step: timedelta) -> None:
    events = [row.event for row in recorded(GOLDEN)]
    middle = len(events) // 2
    stepped = events[:middle] + [
        msgspec.structs.replace(one, at=moved(one.at, step)) for one in events[middle:]
    ]
    assert [one.at for one in stepped] != [one.at for one in events]
    assert folded(stepped) == folded(events)
    (assignment,) = folded(stepped).assignments.values()
    assert assignment.status == "ended"
    assert len(assignment.promotions) == 1


def moved(at: str, by: timedelta) -> str:
    return (datetime.fromisoformat(at) + by).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
