"""replay(append(e)) == e, for every type of event; and many appends are one list."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ledger.facts import Clock, Facts
from tests.property.payloads import events
from thermite.command.signing_key import SigningKey
from thermite.ledger.append import Ledger
from thermite.ledger.encode import decode, encode
from thermite.ledger.replay import recorded
from thermite.schema.event import ENVELOPES, Event

FEW = settings(max_examples=15, suppress_health_check=list(HealthCheck))
KEY = SigningKey.from_raw(bytes(range(32)))


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Ledger, Path]]:
    path = tmp_path_factory.mktemp("property") / "ledger.db"
    clock = Clock()
    with Ledger.create(path, Facts(KEY, clock).opened(), KEY, now=clock) as made:
        yield made, path


@pytest.mark.parametrize("tag", ENVELOPES)
def test_every_event_comes_back_as_it_went_in(tag: str) -> None:
    @FEW
    @given(events(tag))
    def holds(event: Event) -> None:
        row = encode(event)
        assert row.type == tag
        assert decode(row.body) == event

    holds()


@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(
    st.lists(
        st.lists(events("steered") | events("run") | events("tool_called"), max_size=4), max_size=4
    )
)
def test_lists_come_back_in_the_order_of_their_numbers(
    ledger: tuple[Ledger, Path], lists: list[list[Event]]
) -> None:
    writer, path = ledger
    before = writer.size
    seqs = [seq for events_of_one in lists for seq in writer.append(events_of_one)]
    sent = [event for events_of_one in lists for event in events_of_one]
    assert seqs == list(range(before + 1, before + len(sent) + 1))
    assert [row.event for row in recorded(path, before)] == sent
