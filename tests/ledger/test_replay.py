"""Events come back whole and in order, or the replay stops and says where."""

import sqlite3
from pathlib import Path

import pytest

from tests.ledger.facts import Clock, Facts
from tests.ledger.test_opening import append_unknown, change
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError
from thermite.ledger.append import Ledger
from thermite.ledger.reading import opened
from thermite.ledger.replay import checked, linked, recorded


@pytest.fixture
def filled(ledger: Ledger, facts: Facts, path: Path) -> Path:
    ledger.append([facts.probe()])
    ledger.append(facts.campaign())
    ledger.close()
    return path


def test_a_replay_may_begin_anywhere(filled: Path) -> None:
    whole = list(recorded(filled))
    assert [row.seq for row in whole] == list(range(1, 22))
    for after in (1, 7, 20, 21):
        assert list(recorded(filled, after)) == whole[after:]
    with pytest.raises(LedgerError, match="the ledger has no event 22"):
        list(recorded(filled, 22))


def test_an_edited_event_stops_the_replay_where_it_is(filled: Path) -> None:
    change(
        filled,
        "UPDATE events SET body = cast(replace(body, '0.31', '0.91') AS BLOB) WHERE seq = 17",
    )
    rows = recorded(filled)
    assert [next(rows).seq for _ in range(16)] == list(range(1, 17))
    with pytest.raises(LedgerError, match="event 17 does not fit the hash before it"):
        next(rows)


def test_an_unknown_type_stops_the_replay_and_not_the_check(
    filled: Path, rig_key: SigningKey, clock: Clock
) -> None:
    append_unknown(filled, rig_key, clock)
    with pytest.raises(LedgerError) as caught:
        list(recorded(filled))
    assert str(caught.value) == (
        "event 22 is 'verdict@2', which this version does not know: upgrade Thermite"
    )
    assert [row.type for row in checked(filled, 20)] == ["assignment_ended", "verdict@2"]


def test_a_type_column_that_lies_is_noticed(filled: Path) -> None:
    change(filled, "UPDATE events SET type = 'steered' WHERE seq = 2")
    with pytest.raises(LedgerError, match="event 2 is called 'steered', and its body says"):
        list(recorded(filled))


def test_pages_of_any_size_give_the_same_rows(filled: Path) -> None:
    with opened(filled) as connection:
        (whole,) = linked(connection)
        assert [row.seq for row in whole.rows()] == [*range(1, 22)]
        assert len(whole.leaves) == 21
        for pages in (linked(connection, page_rows=4), linked(connection, page_bytes=100)):
            parts = [*pages]
            assert len(parts) > 4
            assert [row for page in parts for row in page.rows()] == [*whole.rows()]
            assert [leaf for page in parts for leaf in page.leaves] == whole.leaves


def test_rows_before_the_one_that_does_not_fit_are_given(filled: Path) -> None:
    change(filled, "UPDATE events SET body = CAST(body || ' ' AS BLOB) WHERE seq = 8")
    read = checked(filled)
    assert [next(read).seq for _ in range(7)] == [1, 2, 3, 4, 5, 6, 7]
    with pytest.raises(LedgerError, match="event 8 does not fit the hash before it"):
        next(read)


def test_a_connection_of_the_caller_stays_open(filled: Path) -> None:
    connection = sqlite3.connect(filled)
    assert len(list(recorded(connection))) == 21
    assert connection.execute("SELECT count(*) FROM events").fetchone() == (21,)
    connection.close()
