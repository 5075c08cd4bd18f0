"""The file itself: its schema, SQLite's own check, and rows read a page at a time.

Source: ledger and signing, 1.1 and 3.3; known fault L3 (a newer file is no fault).
"""

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import ge
from typing import Final, TypeAlias

from thermite.audit.chain import Values
from thermite.audit.findings import Findings
from thermite.command.note import MOST_NOTE_BYTES
from thermite.ledger import tables
from thermite.ledger.encode import MOST_BODY_BYTES
from thermite.ledger.replay import PAGE_BYTES, PAGE_ROWS
from thermite.schema.audit import Finding

_EVENTS: Final = (
    "SELECT seq, type, body, hash, substr(dedup, 1, 1000) FROM events"
    " WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"
)
_NOTES: Final = (
    f"SELECT size, substr(note, 1, {MOST_NOTE_BYTES + 1}) FROM checkpoints"  # noqa: S608 (a number)
    " WHERE size > ? AND size <= ? ORDER BY size LIMIT ?"
)
_SIZES: Final = (
    "SELECT size, NULL FROM checkpoints WHERE size > ? AND size <= ? ORDER BY size LIMIT ?"
)
_MOST_LINES: Final = 10  # of SQLite's own check: the first tell what there is to tell


MOST_BEYOND: Final = 64 << 20
"""Bytes of rows beyond a row's most, after which no more are read: no rig writes any."""


class TooLargeError(sqlite3.DatabaseError):
    """The rows of events are larger by far than those of a ledger can be."""


@dataclass(frozen=True)
class Extent:
    """How much one look at the file found: what is appended later is not part of the audit."""

    events: int
    checkpoints: int


def check_schema(connection: sqlite3.Connection, findings: Findings) -> None:
    """Compare tables and triggers with ours, unless a newer Thermite made the file."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > tables.USER_VERSION:
        findings.add(
            Finding(
                code="newer_layout",
                severity="warning",
                expected=str(tables.USER_VERSION),
                got=str(version),
                explain=f"the file has layout version {version}, and this Thermite knows version"
                f" {tables.USER_VERSION}: its tables were not compared; upgrade Thermite",
            )
        )
        return
    if version != tables.USER_VERSION:
        _add_schema(findings, f"layout version is {version}, and it was never below 1")
    for difference in tables.unlike_schema(connection):
        _add_schema(findings, difference)


def check_soundness(connection: sqlite3.Connection, findings: Findings) -> bool:
    """Let SQLite check its own pages and indexes; return whether it found all of them sound.

    Of some damage its check itself dies.

    It computes what tables and indexes of others say, for ever if they say so: where something
    is not ours, that is the finding, and each row is looked at all the same.
    """
    try:
        if not all(one.endswith("is missing") for one in tables.unlike_schema(connection)):
            return False
        sound = True
        for (line,) in connection.execute(f"PRAGMA integrity_check({_MOST_LINES})"):
            if line != "ok":
                sound = False
                add_damage(findings, str(line)[:200])
    except tables.FILE_ERRORS as error:
        add_damage(findings, error)
        return False
    return sound


def add_damage(findings: Findings, error: str | Exception, after: int | None = None) -> None:
    """Say that a part of the file can't be read; after: the last event that could."""
    large = isinstance(error, TooLargeError)
    what = "rows as large as these are no rig's" if large else "SQLite finds the file damaged"
    findings.add(
        Finding(
            code="damaged_file",
            severity="finding",
            seq=after,
            expected="ok",
            got=str(error),
            explain=what
            + ("" if after is None else f" after event {after}, and nothing later was read"),
        )
    )


def add_empty(findings: Findings) -> None:
    """Say that nothing is left."""
    findings.add(
        Finding(
            code="seq_gap",
            severity="finding",
            seq=1,
            expected="1",
            got=None,
            explain="the ledger holds no event: all of them were deleted",
        )
    )


def extent(
    connection: sqlite3.Connection, having: frozenset[str], findings: Findings, *, sound: bool
) -> Extent:
    """Look once at how far events and checkpoints go.

    Events and their checkpoint come in one transaction, so one look sees both or none.

    Args:
        having: the tables that can be read; sound: SQLite found the rows to be in order.
    """
    size = 0
    connection.execute("BEGIN")
    try:
        low, high = _ends(connection) if sound else _bounds(connection)
        if "checkpoints" in having:
            size = connection.execute("SELECT max(size) FROM checkpoints").fetchone()[0]
    finally:
        connection.execute("ROLLBACK")
    for number in (low, high, size):
        _check_number(number or 0)
    if low is not None and low < 1:
        _add_schema(findings, f"an event has the number {low}, and they begin at 1")
    return Extent(high or 0, size or 0)


def _bounds(connection: sqlite3.Connection) -> tuple[int | None, int | None]:
    """Return the least and the greatest number of an event.

    Both in one query read every page, so a last row that says a small number hides no event. Where
    a page can't be read, each for itself is one way down the tree, past the others.
    """
    try:
        low, high = connection.execute("SELECT min(seq), max(seq) FROM events").fetchone()
    except tables.FILE_ERRORS:
        return _ends(connection)
    return low, high


def _ends(connection: sqlite3.Connection) -> tuple[int | None, int | None]:
    """Return the number of the first and of the last row."""
    low, high = (
        connection.execute(one).fetchone()[0]
        for one in ("SELECT min(seq) FROM events", "SELECT max(seq) FROM events")
    )
    return low, high


def pages(connection: sqlite3.Connection, up_to: int) -> Iterator[Sequence[Values]]:
    """Give the events from 1 on, in order, with values of any kind, many at a time.

    Raises:
        TooLargeError: they are larger than a rig's, by far.
        sqlite3.Error, UnicodeDecodeError: the file is damaged after the last event given.
    """
    after = beyond = 0
    while True:
        page, problem = tables.page_of(connection, _EVENTS, (after, up_to, PAGE_ROWS), PAGE_BYTES)
        page, numbers, problem = _numbered(page, problem)
        seqs = [after, *numbers]
        for at, falls in enumerate(map(ge, seqs, seqs[1:])):
            if falls:
                if at:
                    yield page[:at]
                _check_rises(seqs[at], seqs[at + 1])
        if page:
            yield page
        if problem is not None:
            raise problem
        if not page:
            return
        after = seqs[-1]
        if len(page) < PAGE_ROWS:  # for their size, or as the last
            beyond += sum(map(_beyond, page))
        if beyond > MOST_BEYOND:
            raise TooLargeError(f"{beyond:,} bytes more than a rig writes in as many rows")


def _numbered(
    page: list[Values], problem: Exception | None
) -> tuple[list[Values], list[int], Exception | None]:
    """Return the rows up to the first without a number, their numbers, and what is wrong then."""
    numbers = [row[0] for row in page]
    if {int}.issuperset(map(type, numbers)):
        return page, numbers, problem
    wrong = next(at for at, number in enumerate(numbers) if type(number) is not int)
    problem = sqlite3.DatabaseError(f"row {numbers[wrong]!r:.20} has no number")
    return page[:wrong], numbers[:wrong], problem


def _beyond(row: Sequence[object]) -> int:
    values = [value for value in row[1:4] if isinstance(value, bytes | str)]
    return max(0, sum(map(len, values)) - MOST_BODY_BYTES)


Note: TypeAlias = tuple[int, object]
"""A checkpoint as the file has it: its size and its text."""


def sizes(connection: sqlite3.Connection, extent: Extent) -> Iterator[Note]:
    """Give the checkpoints by size, without their texts, of those that name an event there is."""
    return _by_size(connection, _SIZES, min(extent.events, extent.checkpoints))


def checkpoints(connection: sqlite3.Connection, extent: Extent) -> Iterator[Note]:
    """Give the checkpoints by size."""
    return _by_size(connection, _NOTES, extent.checkpoints)


def _by_size(connection: sqlite3.Connection, select: str, up_to: int) -> Iterator[Note]:
    after = -(1 << 63)
    while True:
        page = connection.execute(select, (after, up_to, PAGE_ROWS)).fetchall()
        if not page:
            return
        for size, note in page:
            _check_number(size)
            _check_rises(after, size)
            after = size
            yield size, note


def _check_number(number: object) -> None:
    """Refuse what stands where a number must, in a table that takes anything."""
    if type(number) is not int:
        raise sqlite3.DatabaseError(f"row {number!r:.20} has no number")


def _check_rises(before: int, number: int) -> None:
    """Refuse rows out of order: a damaged tree would otherwise be walked in a circle."""
    if number <= before:
        raise sqlite3.DatabaseError(f"row {number} follows row {before}")


def _add_schema(findings: Findings, difference: str) -> None:
    findings.add(
        Finding(
            code="schema_changed",
            severity="finding",
            expected=None,
            got=difference,
            explain=f"the tables are not as Thermite made them: {difference}",
        )
    )
