"""When a rig signs where its ledger stands, and that what it signs is so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ledger.facts import Clock, Facts
from tests.requirement import shows
from thermite.command.note import open_note
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError
from thermite.ledger.append import Ledger
from thermite.ledger.chain import leaf
from thermite.ledger.merkle import is_consistent, root_of_inclusion
from thermite.ledger.replay import recorded


def size_of(note: str | None) -> int:
    assert note is not None
    return int(note.splitlines()[1])


def test_the_first_event_is_signed(ledger: Ledger, rig_key: SigningKey) -> None:
    said = open_note(ledger.newest_note(), rig_key.public)
    assert (said.size, said.root, said.head) == (1, ledger.root_at(1), ledger.head)


def test_a_note_is_made_at_each_thousandth_event_also_inside_a_group(
    ledger: Ledger, facts: Facts
) -> None:
    ledger.append([facts.steered() for _ in range(999)])
    assert size_of(ledger.newest_note()) == 1
    ledger.append([facts.steered() for _ in range(2500)])
    assert [size_of(ledger.note_covering(at)) for at in (2, 1001, 1002, 3001)] == [
        1001,
        1001,
        2001,
        3001,
    ]
    assert ledger.note_covering(3002) is None


def test_new_events_are_signed_after_a_minute(ledger: Ledger, facts: Facts, clock: Clock) -> None:
    ledger.append([facts.steered()])
    clock.turn(59.9)
    assert not ledger.checkpoint_if_old()
    ledger.append([facts.steered()])
    assert size_of(ledger.newest_note()) == 1
    clock.turn(0.2)
    assert ledger.checkpoint_if_old()
    assert size_of(ledger.newest_note()) == 3
    clock.turn(3600)
    assert not ledger.checkpoint_if_old()
    ledger.append([facts.steered()])
    assert size_of(ledger.newest_note()) == 4


@shows("L6")
def test_a_clock_that_went_back_does_not_put_off_a_note(
    ledger: Ledger, facts: Facts, clock: Clock
) -> None:
    clock.turn(-7 * 3600)
    ledger.append([facts.steered()])
    assert size_of(ledger.newest_note()) == 2


@pytest.mark.parametrize("name", ["accepted", "refused", "promoted", "ended"])
def test_what_people_rely_on_is_signed_in_its_own_transaction(
    name: str, ledger: Ledger, facts: Facts
) -> None:
    make: Callable[[], Any] = getattr(facts, name)
    ledger.append([facts.steered(), make(), facts.steered()])
    assert size_of(ledger.newest_note()) == 4


def test_a_shutdown_is_signed(ledger: Ledger, facts: Facts, reopen: Callable[[], Ledger]) -> None:
    ledger.append([facts.steered()])
    ledger.close()
    with reopen() as again:
        assert size_of(again.newest_note()) == 2


def test_a_note_on_demand_says_where_the_ledger_stands(ledger: Ledger, facts: Facts) -> None:
    ledger.append([facts.steered()])
    note = ledger.checkpoint()
    assert (size_of(note), ledger.checkpoint()) == (2, note)


def test_proofs_lead_to_the_roots(ledger: Ledger, facts: Facts, path: Path) -> None:
    ledger.append([facts.steered() for _ in range(40)])
    leaves = [leaf(row.body) for row in recorded(path)]
    for seq in (1, 2, 17, 41):
        proof = ledger.inclusion(seq, 41)
        assert root_of_inclusion(leaves[seq - 1], seq - 1, 41, proof) == ledger.root_at(41)
    proof = ledger.consistency(17, 41)
    assert is_consistent(17, ledger.root_at(17), 41, ledger.root_at(41), proof)
    for ask in (lambda: ledger.root_at(42), lambda: ledger.inclusion(1, 42)):
        with pytest.raises(LedgerError, match="has 41 events, not 42"):
            ask()
    with pytest.raises(LedgerError, match="no event 0"):
        ledger.inclusion(0, 41)
    with pytest.raises(LedgerError, match="no proof from 0"):
        ledger.consistency(0, 41)


def test_a_clock_that_gives_no_time_is_refused_where_it_would_be_signed(
    path: Path, facts: Facts, rig_key: SigningKey
) -> None:
    times = ["2026-01-31T12:00:00Z", "yesterday", "2026-01-31T12:00:01Z", "2026-01-31T12:00:01Z"]
    ledger = Ledger.create(path, facts.opened(), rig_key, now=lambda: times.pop(0))
    with pytest.raises(LedgerError, match="clock gives no time: 'yesterday'"):
        ledger.append([facts.promoted()])
    assert ledger.append([facts.steered()]) == [2]
    ledger.close()
