"""Nothing that is written is ever changed through a connection of ours, and triggers say so."""

import sqlite3
from pathlib import Path

import pytest

from thermite.ledger import tables

PUT = "INTO events VALUES ({seq}, 'x', x'00', zeroblob(32), {key})"


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE events SET type = 'y' WHERE seq = 2", "events are never changed"),
        ("DELETE FROM events WHERE seq = 3", "events are never deleted"),
        ("DELETE FROM events", "events are never deleted"),
        ("INSERT " + PUT.format(seq=5, key="NULL"), "without a gap"),
        ("INSERT " + PUT.format(seq=2, key="NULL"), "without a gap"),
        ("INSERT " + PUT.format(seq="NULL", key="NULL"), "without a gap"),
        ("INSERT OR REPLACE " + PUT.format(seq=2, key="NULL"), "without a gap"),
        ("REPLACE " + PUT.format(seq=3, key="NULL"), "without a gap"),
        (
            "INSERT " + PUT.format(seq=2, key="NULL") + " ON CONFLICT DO UPDATE SET type = 'y'",
            "without a gap",
        ),
        ("UPDATE checkpoints SET note = x'00'", "checkpoints are never changed"),
        ("DELETE FROM checkpoints", "checkpoints are never deleted"),
        ("INSERT INTO events VALUES (4, 'x', 'text', zeroblob(32), NULL)", "cannot store TEXT"),
        ("INSERT INTO events VALUES (4, 'x', x'00', zeroblob(31), NULL)", "CHECK constraint"),
    ],
)
def test_a_stranger_with_sqlite_is_refused_by_the_file_itself(
    statement: str, words: str, filled: Path
) -> None:
    connection = sqlite3.connect(filled)
    with pytest.raises(sqlite3.Error, match=words):
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("statement", ["REPLACE " + PUT.format(seq=4, key="'verdict:a5:1:1'")])
def test_replacing_by_key_fires_the_trigger_of_a_deletion(statement: str, filled: Path) -> None:
    connection = sqlite3.connect(filled, isolation_level=None)
    connection.execute("PRAGMA recursive_triggers=ON")
    key = connection.execute("SELECT dedup FROM events WHERE seq = 2").fetchone()[0]
    with pytest.raises(sqlite3.Error, match="events are never deleted"):
        connection.execute(statement.replace("verdict:a5:1:1", key))
    connection.close()


REFUSED = [
    "DROP TRIGGER events_no_update",
    "DROP TABLE events",
    "ALTER TABLE events ADD COLUMN more",
    "ATTACH ':memory:' AS other",
    "UPDATE events SET type = 'y'",
    "DELETE FROM events",
    "CREATE TABLE more(x)",
    "CREATE TEMP TABLE more(x)",
    "VACUUM",
    "PRAGMA writable_schema=ON",
    "PRAGMA synchronous=OFF",
    "PRAGMA user_version=2",
    "PRAGMA journal_mode=DELETE",
    "INSERT INTO sqlite_schema VALUES ('table', 'x', 'x', 2, '')",
]


@pytest.mark.parametrize("statement", REFUSED)
def test_our_own_writer_is_refused_before_it_starts(statement: str, filled: Path) -> None:
    connection = tables.writer(filled)
    with pytest.raises(
        sqlite3.DatabaseError, match=r"not authorized|prohibited|authorization denied"
    ):
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize("statement", [*REFUSED, "INSERT " + PUT.format(seq=4, key="NULL")])
def test_our_own_readers_change_nothing(statement: str, filled: Path) -> None:
    before = filled.read_bytes()
    connection = tables.reader(filled)
    with pytest.raises(sqlite3.DatabaseError):
        connection.execute(statement)
    connection.close()
    assert filled.read_bytes() == before


def test_the_writer_syncs_at_each_commit_and_keeps_a_log(filled: Path) -> None:
    connection = sqlite3.connect(filled)
    assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    connection.close()
    writer = tables.writer(filled)
    writer.set_authorizer(None)
    for pragma, value in (("synchronous", 2), ("recursive_triggers", 1), ("trusted_schema", 0)):
        assert writer.execute(f"PRAGMA {pragma}").fetchone()[0] == value
    writer.close()


def test_a_ledger_is_for_its_owner_only(filled: Path) -> None:
    assert filled.stat().st_mode & 0o777 == 0o600
    assert filled.with_suffix(".lock").stat().st_mode & 0o777 == 0o600
