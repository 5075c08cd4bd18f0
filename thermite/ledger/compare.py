"""`views.db` beside the tables that its ledger's events lead to, value by value.

The file is a stranger's until it is compared: it is read from a private copy, and nothing
but plain tables with our columns is asked for anything. Source: ledger and signing, 3.6.
"""

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from thermite.errors import LedgerError
from thermite.ledger.reading import opened
from thermite.ledger.replay import newest
from thermite.ledger.tables import FILE_ERRORS, MOST_VALUE_BYTES
from thermite.ledger.views import TABLES, VERSION, build, mark
from thermite.schema.rebuilt import MOST_MISMATCHES, Mismatch, Rebuilt

_FILE: Final = "views.db"
_MOST_TIMES: Final = 4
_MOST_MORE: Final = 64 << 20
"""A views file, or its log, that is copied has at most so many times its ledger's bytes, and so
many more: the tables hold a part of what the events say (our bound)."""
_Row = dict[str, Any]


def compare(ledger: Path, views: Path) -> Rebuilt:
    """Return where a views file says something else than the events up to its own end.

    Raises:
        FileNotFoundError: there is no ledger, or no views file.
        LedgerError: the ledger was changed, or the views file can't be read at all.
    """
    with TemporaryDirectory(prefix="thermite-rebuild-") as folder, opened(ledger) as source:
        most = _MOST_TIMES * ledger.stat().st_size + _MOST_MORE
        copy, anew = _copied(views, Path(folder), most), Path(folder) / "anew.db"
        try:
            with closing(sqlite3.connect(copy)) as file:
                file.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)
                file.execute("PRAGMA trusted_schema=OFF")
                wrong = list(_unlike_tables(file)) or list(_unlike_mark(file, source))
                if wrong:
                    return Rebuilt(compared=[_FILE], mismatches=wrong)
                (seq,) = file.execute("SELECT seq FROM projection").fetchone()
                build(source, anew, until=seq)
                file.execute("ATTACH ? AS anew", (str(anew),))
                return _unlike_rows(file)
        except FILE_ERRORS as error:
            raise LedgerError(f"{views} can't be read: {error}") from None


def _copied(views: Path, folder: Path, most: int) -> Path:
    """Copy a plain file, and its log if there is one, to where nobody else writes.

    most: bytes of each.
    """
    copy = folder / _FILE
    for ending in ("", "-wal"):
        path = views.with_name(views.name + ending)
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            if not ending:
                raise
            continue
        except OSError as error:
            raise LedgerError(f"{path} can't be read: {error.strerror}") from None
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                raise LedgerError(f"{path} is no views file: it is not a plain file")
            if found.st_size > most:
                raise LedgerError(
                    f"{path} is no views file of this ledger: it has {found.st_size} bytes, and"
                    f" {most} are the most; make it anew with thermite ledger views"
                )
            with (
                os.fdopen(os.dup(descriptor), "rb") as file,
                (folder / f"{_FILE}{ending}").open("wb") as to,
            ):
                shutil.copyfileobj(file, to)
        finally:
            os.close(descriptor)
    return copy


def _unlike_tables(file: sqlite3.Connection) -> Iterator[Mismatch]:
    """Say which of our tables is missing, no table (a view could run for ever), or other."""
    made = dict(file.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'"))
    for name, (key, columns) in TABLES.items():
        stands = "no table"
        if str(made.get(name)).upper().startswith("CREATE TABLE"):
            found = file.execute("SELECT name, pk FROM pragma_table_info(?)", (name,)).fetchall()
            keyed = [column for column, at in sorted(found, key=lambda row: row[1]) if at]
            stands = ", ".join(column for column, _ in found)
            if stands == ", ".join(columns) and keyed == list(key):
                continue
        yield _mismatch(name, "", _short(stands), ", ".join(columns))


def _unlike_mark(file: sqlite3.Connection, source: sqlite3.Connection) -> Iterator[Mismatch]:
    """Say how the file's end is none of this ledger's."""
    rows = file.execute("SELECT version, seq, head FROM projection LIMIT 2").fetchall()
    stands = " and ".join(str(row) for row in rows) or "nothing"
    if len(rows) == 1 and rows[0][0] != VERSION:
        yield _mismatch("projection", "", _short(stands), f"version {VERSION}")
        return
    seq = rows[0][1] if len(rows) == 1 else None
    if not isinstance(seq, int) or not 0 < seq <= newest(source):
        yield _mismatch("projection", "", _short(stands), f"up to event {newest(source)}")
    elif (true := mark(source, seq)) != rows[0]:
        yield _mismatch("projection", "", _short(stands), str(true))


def _unlike_rows(file: sqlite3.Connection) -> Rebuilt:
    """Return every value that differs; a row that only one side has is one value."""
    found: list[Mismatch] = []
    count = rows = 0
    for name, (key, _) in TABLES.items():
        rows += file.execute(f"SELECT count(*) FROM anew.{name}").fetchone()[0]  # noqa: S608
        sides = [_only(file, name, key, *order) for order in (("main", "anew"), ("anew", "main"))]
        for place in sorted(sides[0].keys() | sides[1].keys(), key=str):
            for mismatch in _unlike(name, place, sides[0].get(place), sides[1].get(place)):
                count += 1
                found += [mismatch] * (count <= MOST_MISMATCHES)
    unlisted = max(0, count - MOST_MISMATCHES)
    return Rebuilt(compared=[_FILE], rows=rows, mismatches=found, unlisted=unlisted)


def _only(
    file: sqlite3.Connection, name: str, key: tuple[str, ...], one: str, other: str
) -> dict[str, _Row]:
    """Return the rows that only one side has, by their key."""
    query = f"SELECT * FROM {one}.{name} EXCEPT SELECT * FROM {other}.{name}"  # noqa: S608
    asked = file.execute(query)
    names = [column[0] for column in asked.description]
    rows = (dict(zip(names, row, strict=True)) for row in islice(asked, 10 * MOST_MISMATCHES))
    return {", ".join(f"{part}={row[part]}" for part in key): row for row in rows}


def _unlike(name: str, key: str, stands: _Row | None, true: _Row | None) -> Iterator[Mismatch]:
    if stands is None or true is None:
        words = ["a row" if row is not None else "no such row" for row in (stands, true)]
        yield _mismatch(name, _short(key), *words)
        return
    for column, value in true.items():
        if stands[column] != value or type(stands[column]) is not type(value):
            yield _mismatch(f"{name}.{column}", _short(key), _short(stands[column]), _short(value))


def _short(value: object) -> str:
    return ascii(value)[:200] if not isinstance(value, str) else ascii(value)[1:-1][:200]


def _mismatch(place: str, key: str, stands: str, events_say: str) -> Mismatch:
    return Mismatch(file=_FILE, place=place, key=key, stands=stands, events_say=events_say)
