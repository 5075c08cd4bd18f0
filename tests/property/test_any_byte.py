"""Any changed byte of an event or a checkpoint fails the audit, which names the place."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ledger.facts import Clock, Facts
from thermite.audit.verify import audit
from thermite.command.note import open_note
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError
from thermite.ledger.append import Ledger
from thermite.ledger.tables import SCHEMA

KEY = SigningKey.from_raw(bytes(range(32)))
TRIGGERS = [(name, text) for (kind, name), text in SCHEMA.items() if kind == "trigger"]
EVENTS = 23
NOTES = (1, 21, 22, 23)
COLUMNS = [
    *(
        ("events", "seq", seq, column)
        for seq in range(1, EVENTS + 1)
        for column in ("type", "body", "hash", "dedup")
    ),
    *(("checkpoints", "size", size, "note") for size in NOTES),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("any-byte") / "ledger.db"
    clock = Clock()
    facts = Facts(KEY, clock)
    with Ledger.create(path, facts.opened(), KEY, now=clock) as ledger:
        ledger.append([facts.probe()])
        ledger.append(facts.campaign())
        ledger.append([facts.refused()])
        ledger.append([facts.probe()])
    assert not audit(path).fails
    return path


def flipped(value: bytes, at: int) -> bytes:
    """Change the lowest bit of one byte, which leaves ASCII ASCII."""
    return value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]


def change(whole: Path, table: str, key: str, row: int, column: str, at: float) -> Path:
    """Copy a ledger and change one byte of one value in it; null becomes one byte."""
    copy = whole.with_name("copy.db")
    shutil.copy(whole, copy)
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("BEGIN")
        for name, _ in TRIGGERS:
            connection.execute(f"DROP TRIGGER {name}")
        where = f"FROM {table} WHERE {key} = ?"
        value = connection.execute(f"SELECT {column} {where}", (row,)).fetchone()[0]
        raw = value.encode() if isinstance(value, str) else value or b"w"
        new = flipped(raw, int(at * len(raw)))
        stored = new if isinstance(value, bytes) else new.decode()
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (stored, row))
        for _, text in TRIGGERS:
            connection.execute(text)
        connection.execute("COMMIT")
    return copy


def assert_named(whole: Path, table: str, key: str, row: int, column: str, at: float) -> None:
    found = audit(change(whole, table, key, row, column, at))
    places = [
        one.seq if table == "events" else one.size
        for one in found.findings
        if one.severity == "finding"
    ]
    assert row in places, (table, row, column, found.findings)


@pytest.mark.parametrize(("table", "key", "row", "column"), COLUMNS)
def test_each_value_of_each_row_is_guarded(
    table: str, key: str, row: int, column: str, whole: Path
) -> None:
    for at in (0.0, 0.999):
        assert_named(whole, table, key, row, column, at)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(COLUMNS), st.floats(0, 0.9999))
def test_a_byte_anywhere_in_them_is_guarded(
    whole: Path, place: tuple[str, str, int, str], at: float
) -> None:
    assert_named(whole, *place, at)


def test_every_byte_of_a_checkpoint_is_guarded(whole: Path) -> None:
    with closing(sqlite3.connect(whole)) as connection:
        note = connection.execute("SELECT note FROM checkpoints WHERE size = 21").fetchone()[0]
    assert open_note(note.decode(), KEY.public).size == 21
    for at in range(len(note)):
        with pytest.raises((LedgerError, UnicodeDecodeError)):
            open_note(flipped(note, at).decode(), KEY.public)


def rows(path: Path) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(f"file:{path}?immutable=1", uri=True)) as connection:
        return [
            *connection.execute("SELECT seq, type, body, hash, dedup FROM events ORDER BY seq"),
            *connection.execute("SELECT size, note FROM checkpoints ORDER BY size"),
        ]


@settings(max_examples=200, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_byte_anywhere_in_the_file_never_passes_for_another_ledger(
    whole: Path, data: st.DataObject
) -> None:
    raw = bytearray(whole.read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] ^= data.draw(st.integers(1, 255))
    copy = whole.with_name("copy.db")
    copy.write_bytes(raw)
    try:
        clean = not audit(copy).fails
    except LedgerError:
        return
    if clean:  # what the byte was for is no part of an event or a checkpoint
        assert rows(copy) == rows(whole)
