"""The file's layout: its tables, the triggers that guard them, and what a connection may do.

The triggers stop mistakes, and so does the authorizer on every connection of ours; neither
stops somebody who opens the file with another program. An audit compares the text below
with what the file holds.

Source: ledger and signing, 1.1 and 3.3.
"""

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import quote

APPLICATION_ID: Final = 0x54484D4C
"""`THML`: what makes a SQLite file a ledger of ours."""
USER_VERSION: Final = 1
"""The version of this layout."""

SCHEMA: Final[Mapping[tuple[str, str], str]] = {
    ("table", "events"): (
        "CREATE TABLE events(seq INTEGER PRIMARY KEY, type TEXT NOT NULL, body BLOB NOT NULL,"
        " hash BLOB NOT NULL CHECK(length(hash)=32), dedup TEXT) STRICT"
    ),
    ("index", "events_once"): (
        "CREATE UNIQUE INDEX events_once ON events(dedup) WHERE dedup IS NOT NULL"
    ),
    ("table", "checkpoints"): (
        "CREATE TABLE checkpoints(size INTEGER PRIMARY KEY, note BLOB NOT NULL) STRICT"
    ),
    ("trigger", "events_no_update"): (
        "CREATE TRIGGER events_no_update BEFORE UPDATE ON events"
        " BEGIN SELECT RAISE(ABORT, 'events are never changed'); END"
    ),
    ("trigger", "events_no_delete"): (
        "CREATE TRIGGER events_no_delete BEFORE DELETE ON events"
        " BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END"
    ),
    ("trigger", "events_in_order"): (
        "CREATE TRIGGER events_in_order BEFORE INSERT ON events"
        " WHEN NEW.seq IS NOT (SELECT coalesce(max(seq), 0) + 1 FROM events)"
        " BEGIN SELECT RAISE(ABORT, 'events are numbered 1, 2, 3 without a gap'); END"
    ),
    ("trigger", "checkpoints_no_update"): (
        "CREATE TRIGGER checkpoints_no_update BEFORE UPDATE ON checkpoints"
        " BEGIN SELECT RAISE(ABORT, 'checkpoints are never changed'); END"
    ),
    ("trigger", "checkpoints_no_delete"): (
        "CREATE TRIGGER checkpoints_no_delete BEFORE DELETE ON checkpoints"
        " BEGIN SELECT RAISE(ABORT, 'checkpoints are never deleted'); END"
    ),
}
"""What `sqlite_schema` holds: (type, name) to its exact text, in the order of creation."""

MOST_VALUE_BYTES: Final = 1 << 24
"""Longest value that a reader takes from a file (SQLITE_LIMIT_LENGTH): 64 times a body."""

FILE_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged file may raise: SQLite's word on it can hold bytes of the file, and
Python takes every such word for UTF-8."""

_READS: Final = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_TRANSACTION,
        sqlite3.SQLITE_FUNCTION,
    }
)
_TABLES: Final = frozenset({"events", "checkpoints"})
# Pragmas that only look; `journal_mode` and the like are set before the authorizer is.
_LOOKS: Final = frozenset(
    {"application_id", "user_version", "quick_check", "integrity_check", "journal_mode"}
)


def make_tables(connection: sqlite3.Connection) -> None:
    """Lay out an empty file; WAL is on from here on, since the mode is kept in the file."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={USER_VERSION}")
    for text in SCHEMA.values():
        connection.execute(text)


def writer(path: Path) -> sqlite3.Connection:
    """Return the one connection that writes to an existing file, durable at each COMMIT.

    WAL with synchronous=FULL syncs the log at each commit (NORMAL does not, and loses
    acknowledged events when the power fails). It takes no DDL, UPDATE, DELETE or ATTACH.
    """
    connection = _connect(path, "rw")
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "recursive_triggers=ON",
        "trusted_schema=OFF",
        "busy_timeout=5000",
        "temp_store=MEMORY",
    ):
        connection.execute(f"PRAGMA {pragma}")
    connection.set_authorizer(_may_append)
    return connection


def reader(path: Path, *, immutable: bool = False) -> sqlite3.Connection:
    """Return a connection that reads and cannot change anything.

    Args:
        path: the ledger's file.
        immutable: the file has no log beside it and nobody writes to it: no lock is taken
            and no file is made beside it.
    """
    connection = _connect(path, "ro&immutable=1" if immutable else "ro")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)
    # A doctored file may hold text that is no UTF-8: it is shown, never a traceback.
    connection.text_factory = _text
    for pragma in ("query_only=ON", "trusted_schema=OFF", "busy_timeout=5000", "temp_store=MEMORY"):
        connection.execute(f"PRAGMA {pragma}")
    connection.set_authorizer(_may_read)
    return connection


def unlike_schema(connection: sqlite3.Connection) -> list[str]:
    """Return each difference between the file's schema and ours, in words."""
    found = {
        (str(kind), str(name)): str(text)
        for kind, name, text in connection.execute(
            "SELECT type, name, sql FROM sqlite_schema ORDER BY rowid"
        )
    }
    problems = [f"{kind} {name} is missing" for kind, name in SCHEMA if (kind, name) not in found]
    for (kind, name), text in found.items():
        expected = SCHEMA.get((kind, name))
        if expected is None:
            problems.append(f"{kind} {name} does not belong to a ledger")
        elif text != expected:
            problems.append(f"{kind} {name} is not what Thermite made")
    return problems


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _may_read(
    action: int, first: str | None, second: str | None, _database: str | None, _by: str | None
) -> int:
    looks = action == sqlite3.SQLITE_PRAGMA and first in _LOOKS and _only_looks(first, second)
    return sqlite3.SQLITE_OK if action in _READS or looks else sqlite3.SQLITE_DENY


def _may_append(
    action: int, first: str | None, second: str | None, database: str | None, by: str | None
) -> int:
    if action == sqlite3.SQLITE_INSERT and first in _TABLES:
        return sqlite3.SQLITE_OK
    return _may_read(action, first, second, database, by)


def _only_looks(pragma: str | None, value: str | None) -> bool:
    # The checks take a number of lines as their value; any other value would be a change.
    return value is None or pragma in {"quick_check", "integrity_check"}
