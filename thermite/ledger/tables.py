"""The file's layout: its tables, the triggers that guard them, and what a connection may do.

The triggers stop mistakes, and so does the authorizer on every connection of ours; neither
stops somebody who opens the file with another program. An audit compares the text below
with what the file holds.

Source: ledger and signing, 1.1 and 3.3.
"""

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import quote

APPLICATION_ID: Final = 0x54484D4C
"""`THML`: what makes a SQLite file a ledger of ours."""
USER_VERSION: Final = 1
"""The version of this layout."""
LARGE_LOG_BYTES: Final = 16 << 20
"""What a log that starts over is cut down to. It does at 4 MiB (SQLite's 1,000 pages), and a
transaction is mostly 4 MiB at most: a program that holds one view of the file makes it larger."""

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

May: TypeAlias = Callable[[int, str | None, str | None, str | None, str | None], int]
"""What SQLite asks: an action, its two arguments, the database, the trigger or view behind it."""
PLAIN_CODE: Final = 0xFF
"""SQLite's extended codes keep the plain one in their low byte."""
_NO_FUNCTION: Final = "not authorized to use function"
"""What SQLite says of a refusal that has no code of its own."""

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
    {
        *("application_id", "user_version", "journal_mode"),
        *("quick_check", "integrity_check", "table_xinfo"),
    }
)
_WITH_A_VALUE: Final = frozenset({"quick_check", "integrity_check", "table_xinfo"})
_NUMBERED: Final = {"events": "seq", "checkpoints": "size"}
"""Each table's rows come in the order of this column."""


class Guarded(sqlite3.Connection):
    """A connection that asks before each new statement, and takes an interrupt then for what it is.

    Python asks a function of ours, and hands to SQLite as a refusal whatever that one raises. An
    interrupt comes at any call, and looked like `not authorized`, as of a damaged file or a disk
    that fails. So where nobody has refused, somebody was interrupted.
    """

    _refused = False

    def guard(self, may: May) -> None:
        """Ask this from now on, before each new statement."""

        def asked(*what: Any) -> int:  # noqa: ANN401 - what SQLite tells
            said = may(*what)
            self._refused |= said != sqlite3.SQLITE_OK
            return said

        self.set_authorizer(asked)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:  # noqa: ANN401
        """Execute one statement, as the class above does.

        Raises:
            KeyboardInterrupt: it came when it was asked whether the statement may be.
        """
        self._refused = False
        try:
            return super().execute(sql, parameters)
        except sqlite3.DatabaseError as error:
            self.check_interrupt(error)
            raise

    def executemany(self, sql: str, parameters: Any, /) -> sqlite3.Cursor:  # noqa: ANN401
        """Execute one statement for each of many values; raises as `execute`."""
        self._refused = False
        try:
            return super().executemany(sql, parameters)
        except sqlite3.DatabaseError as error:
            self.check_interrupt(error)
            raise

    def check_interrupt(self, error: sqlite3.Error) -> None:
        """Raise the interrupt that an error of this connection, or of its cursor, stands for.

        Raises:
            KeyboardInterrupt: nobody refused what was not authorized.
        """
        is_refusal = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_AUTH
        is_refusal = is_refusal or str(error).startswith(_NO_FUNCTION)
        if is_refusal and not self._refused:
            raise KeyboardInterrupt from None


def is_of_the_disk(error: sqlite3.Error) -> bool:
    """Return whether an error is the disk's, which is full or fails, and says nothing of a file."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & PLAIN_CODE
    return code in {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}


def make_tables(connection: sqlite3.Connection) -> None:
    """Lay out an empty file; WAL is on from here on, since the mode is kept in the file."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={USER_VERSION}")
    for text in SCHEMA.values():
        connection.execute(text)


def writer(path: Path) -> Guarded:
    """Return the one connection that writes to an existing file, durable at each COMMIT.

    WAL with synchronous=FULL syncs the log at each commit (NORMAL does not, and loses
    acknowledged events when the power fails). It takes no DDL, UPDATE, DELETE or ATTACH.
    """
    connection = _connect(path, "rw")
    for pragma in (
        f"journal_size_limit={LARGE_LOG_BYTES}",
        "journal_mode=WAL",
        "synchronous=FULL",
        "recursive_triggers=ON",
        "trusted_schema=OFF",
        "busy_timeout=5000",
        "temp_store=MEMORY",
    ):
        connection.execute(f"PRAGMA {pragma}")
    connection.guard(_may_append)
    return connection


def reader(path: Path, *, immutable: bool = False) -> Guarded:
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
    connection.guard(_may_read)
    return connection


def page_of(
    connection: sqlite3.Connection, select: str, values: Sequence[int], most_bytes: int
) -> tuple[list[tuple[Any, ...]], Exception | None]:
    """Return the rows of one short read, and what kept SQLite from reading on.

    Args:
        connection: one of `reader`.
        select: a query of number, type, body and hash, and maybe more that is short.
        values: its parameters; the last one is the most rows.
        most_bytes: of these three; the page ends behind the row that passes them, or one of whose
            values has no length.
    """
    page = _small_page(connection, select, values, most_bytes // (3 * max(values[-1], 1)))
    return (page, None) if page is not None else _row_by_row(connection, select, values, most_bytes)


def _small_page(
    connection: sqlite3.Connection, select: str, values: Sequence[int], most_value: int
) -> list[tuple[Any, ...]] | None:
    """Return all rows, read at once, if they are sound and none of their values is longer."""
    usual = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, most_value)
    connection.text_factory = str
    try:
        return connection.execute(select, values).fetchall()
    except FILE_ERRORS:
        return None
    finally:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, usual)
        connection.text_factory = _text


def _row_by_row(
    connection: sqlite3.Connection, select: str, values: Sequence[int], most_bytes: int
) -> tuple[list[tuple[Any, ...]], Exception | None]:
    """Return the rows of one short read, as `page_of` does, looking at each before the next.

    Text that is no UTF-8 is shown by our own reader of text, which takes a third longer: the
    page is read again with it.
    """
    page: list[tuple[Any, ...]] = []
    problem: Exception | None = None
    for connection.text_factory in (str, _text):
        page, problem, taken = [], None, 0
        try:
            with closing(connection.execute(select, values)) as rows, suppress(TypeError):
                for row in rows:
                    page.append(row)
                    taken += len(row[1]) + len(row[2]) + len(row[3])
                    if taken > most_bytes:
                        break
        except FILE_ERRORS as error:
            problem = error
        else:
            break
    connection.text_factory = _text
    return page, problem


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


def changed_table(connection: sqlite3.Connection) -> str | None:
    """Return the name of a table that is not what Thermite made, None when both are.

    What the file itself says of its tables decides how they are read: a view may run for ever,
    a column may be computed, and rows without their key have to be sorted first.
    """
    found = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
        " AND name IN ('events', 'checkpoints')"
    ).fetchall()
    return next((one for one in _NUMBERED if (one, SCHEMA["table", one]) not in found), None)


def plain_tables(connection: sqlite3.Connection) -> frozenset[str]:
    """Return which of a ledger's tables can be read in order, whoever made them.

    Each is a table, not a view; none of its columns is computed; its number is its key.
    """
    found = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
        " AND name IN ('events', 'checkpoints')"
    ).fetchall()
    return frozenset(
        str(name)
        for name, text in found
        if str(text).upper().startswith("CREATE TABLE") and _is_plain(connection, str(name))
    )


def _is_plain(connection: sqlite3.Connection, table: str) -> bool:
    columns = connection.execute(f"PRAGMA table_xinfo({table})").fetchall()
    keys = [column[1] for column in columns if column[5]]
    return keys == [_NUMBERED[table]] and not any(column[6] for column in columns)


def _connect(path: Path, mode: str) -> Guarded:
    uri = f"file:{quote(os.fsencode(path.absolute()))}?mode={mode}"
    return sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, factory=Guarded
    )


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
    # A number of lines, or a table's name; any other value would be a change.
    return value is None or pragma in _WITH_A_VALUE
