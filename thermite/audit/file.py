"""The file itself: its schema, SQLite's own check, and rows read a page at a time.

Source: ledger and signing, 1.1 and 3.3; known fault L3 (a newer file is no fault).
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from operator import ge
from typing import Final

from thermite.audit.chain import Values
from thermite.audit.findings import Findings
from thermite.ledger import tables
from thermite.ledger.replay import PAGE_BYTES, PAGE_ROWS
from thermite.schema.audit import Finding

_MOST_LINES: Final = 10  # of SQLite's own check: the first tell what there is to tell


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


def check_soundness(connection: sqlite3.Connection, findings: Findings) -> None:
    """Let SQLite check its own pages and indexes."""
    for (line,) in connection.execute(f"PRAGMA integrity_check({_MOST_LINES})"):
        if line != "ok":
            add_damage(findings, str(line)[:200])


def add_damage(findings: Findings, what: str, after: int | None = None) -> None:
    """Say that SQLite can't read a part of the file; after: the last event that it could."""
    findings.add(
        Finding(
            code="damaged_file",
            severity="finding",
            seq=after,
            expected="ok",
            got=what,
            explain="SQLite finds the file damaged"
            + ("" if after is None else f" after event {after}, and nothing later was read"),
        )
    )


def plain_tables(connection: sqlite3.Connection) -> frozenset[str]:
    """Return which of a ledger's tables are tables: a view could run for ever."""
    return frozenset(
        str(name)
        for name, text in connection.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table'"
        )
        if name in {"events", "checkpoints"} and str(text).upper().startswith("CREATE TABLE")
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


def extent(connection: sqlite3.Connection, having: frozenset[str], findings: Findings) -> Extent:
    """Look once at how far events and checkpoints go.

    Events and their checkpoint come in one transaction, so one look sees both or none.
    """
    size = 0
    connection.execute("BEGIN")
    try:
        low, high = connection.execute("SELECT min(seq), max(seq) FROM events").fetchone()
        if "checkpoints" in having:
            size = connection.execute("SELECT max(size) FROM checkpoints").fetchone()[0]
    finally:
        connection.execute("ROLLBACK")
    if low is not None and low < 1:
        _add_schema(findings, f"an event has the number {low}, and they begin at 1")
    return Extent(high or 0, size or 0)


def pages(connection: sqlite3.Connection, up_to: int) -> Iterator[Sequence[Values]]:
    """Give the events from 1 on, in order, with values of any kind, many at a time.

    Raises:
        sqlite3.Error, UnicodeDecodeError: the file is damaged after the last event given.
    """
    after = 0
    while True:
        page, problem = _page(connection, after, up_to)
        seqs = [after, *(row[0] for row in page)]
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


def _page(
    connection: sqlite3.Connection, after: int, up_to: int
) -> tuple[list[Values], Exception | None]:
    """Return the next rows, and what kept SQLite from reading on."""
    page: list[Values] = []
    taken = 0
    try:
        with closing(
            connection.execute(
                "SELECT seq, type, body, hash, dedup FROM events"
                " WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
                (after, up_to, PAGE_ROWS),
            )
        ) as cursor:
            for row in cursor:
                page.append(row)
                taken += len(row[2]) if isinstance(row[2], (bytes, str)) else 0
                if taken > PAGE_BYTES:
                    break
    except tables.FILE_ERRORS as error:
        return page, error
    return page, None


def checkpoints(connection: sqlite3.Connection, up_to: int) -> Iterator[tuple[int, object]]:
    """Give the checkpoints by size."""
    after = -(1 << 63)
    while True:
        page = connection.execute(
            "SELECT size, note FROM checkpoints WHERE size > ? AND size <= ? ORDER BY size LIMIT ?",
            (after, up_to, PAGE_ROWS),
        ).fetchall()
        if not page:
            return
        for size, note in page:
            _check_rises(after, size)
            after = size
            yield size, note


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
