"""`views.db`: the events as tables for people with SQL; made from the ledger, never a fact.

Rows come event by event, so that a file that is behind is brought up to date; one of another
projection, or of another history, is thrown away and made anew. It may be deleted at any time.

Source: ledger and signing, 3.6; sqlite-utils' own transactions: 1.2.
"""

import os
import sqlite3
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
import sqlite_utils

from thermite.command import strict_base64
from thermite.errors import LedgerError
from thermite.ledger.reading import opened
from thermite.ledger.replay import Recorded, head_at, newest, recorded
from thermite.ledger.tables import FILE_ERRORS
from thermite.ledger.whole import BESIDE, beside, left_by_sqlite, made_whole, unfinished
from thermite.schema import event as e

VERSION: Final = 1
"""Of the tables below; a file of another version is made anew."""
GROUP: Final = 10_000
"""Events of one transaction, as a page of the ledger (3.3)."""

_Values: TypeAlias = dict[str, Any]
_Row: TypeAlias = tuple[str, _Values]

TABLES: Final[Mapping[str, tuple[tuple[str, ...], Mapping[str, type]]]] = {
    "commands": (
        ("seq",),
        {
            "seq": int,
            "at": str,
            "outcome": str,
            "code": str,
            "type": str,
            "id": str,
            "issuer": str,
            "sha256": str,
            "assignment": str,
        },
    ),
    "assignments": (
        ("id",),
        {
            "id": str,
            "seq": int,
            "at": str,
            "name": str,
            "campaign": str,
            "project": str,
            "commit": str,
            "kit": str,
            "ended_at": str,
            "reason": str,
            "champion": str,
            "gain": float,
            "low": float,
            "high": float,
        },
    ),
    "attempts": (
        ("assignment", "attempt"),
        {
            "assignment": str,
            "attempt": int,
            "seq": int,
            "at": str,
            "lane": int,
            "proposal": str,
            "base": str,
            "commit": str,
            "tree": str,
            "result": str,
        },
    ),
    "verdicts": (
        ("seq",),
        {
            "seq": int,
            "at": str,
            "assignment": str,
            "attempt": int,
            "tries": int,
            "verdict": str,
            "gain": float,
            "low": float,
            "high": float,
            "reasons": str,
        },
    ),
    "blocks": (
        ("seq",),
        {
            "seq": int,
            "assignment": str,
            "attempt": int,
            "tries": int,
            "stage": str,
            "block": int,
            "D": float,
            "dropped": str,
        },
    ),
    "runs": (
        ("seq",),
        {
            "seq": int,
            "assignment": str,
            "attempt": int,
            "tries": int,
            "stage": str,
            "block": int,
            "cell": str,
            "arm": str,
            "outcome": str,
            "t_ns": int,
            "flags": str,
        },
    ),
    "promotions": (
        ("seq",),
        {
            "seq": int,
            "at": str,
            "assignment": str,
            "attempt": int,
            "commit": str,
            "previous": str,
            "gain": float,
            "low": float,
            "high": float,
        },
    ),
    "budgets": (
        ("seq", "what"),
        {"seq": int, "assignment": str, "attempt": int, "agent": str, "what": str, "amount": float},
    ),
    "projection": (("version",), {"version": int, "seq": int, "head": str}),
}
"""Each table's key, and its columns; docs/reference/ledger.md explains them."""


def renew(ledger: Path, target: Path) -> int:
    """Bring a views file up to the ledger's end, or make it whole; return its events.

    Raises:
        FileNotFoundError: there is no ledger.
        LedgerError: the ledger was changed, or what is at the target, or beside it under a
            name that SQLite would use, is anything but a views file of ours.
    """
    there = _is_there(ledger, target)
    with opened(ledger) as source:
        try:
            if there and _continues(source, target):
                return _grow(target, source)
            return _make(target, source)
        except OSError as error:
            raise LedgerError(f"{target} can't be written: {error.strerror}") from None
        except FILE_ERRORS as error:
            text = f"{target} can't be written: {error}; remove it, and it is made anew"
            raise LedgerError(text) from None


def _make(target: Path, source: sqlite3.Connection) -> int:
    with made_whole(target) as new:
        count = _grow(new, source)
        for ending in BESIDE:
            beside(target, ending).unlink(missing_ok=True)
    return count


def _is_there(ledger: Path, target: Path) -> bool:
    """Return whether a views file is at the target, or False when nothing at all is.

    Raises:
        LedgerError: anything else is, which would be written over or removed.
    """
    if target.absolute() in {beside(ledger.absolute(), ending) for ending in BESIDE}:
        raise LedgerError(f"{target} is a name that belongs to the ledger: name another file")
    there = _is_plain(target)
    if there and not _is_ours(target):
        raise LedgerError(f"{target} is no views file: name another, it would be written over")
    for ending in BESIDE:
        path = beside(target, ending)
        if _is_plain(path) and not (there and left_by_sqlite(path)):
            raise LedgerError(
                f"{path} is not of the views file {target.name}: move it away or name another file"
            )
    _check_unfinished(unfinished(target))
    return there


def _check_unfinished(new: Path) -> None:
    """Refuse to remove another database that has the name under which views are made."""
    killed = os.path.lexists(beside(new, "-journal"))
    if _is_plain(new) and new.stat().st_size and not killed and not _is_ours(new):
        raise LedgerError(f"{new} is no views file that a kill left unfinished: move it away")


def _is_plain(path: Path) -> bool:
    """Return whether a plain file of one name is there, False when nothing is.

    Raises:
        LedgerError: a link, a device, a pipe, a folder, or a file that has other names.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise LedgerError(f"{path} can't be looked at: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        raise LedgerError(
            f"{path} is no views file, but a link, a device or another thing that is no plain file"
            " of one name: name another file"
        )
    return True


def _is_ours(target: Path) -> bool:
    """Return whether a plain file has the table that marks every views file, read without trace."""
    try:
        address = f"{target.absolute().as_uri()}?immutable=1"
        with closing(sqlite3.connect(address, uri=True)) as file:
            columns = file.execute("SELECT name FROM pragma_table_info('projection')").fetchall()
    except FILE_ERRORS:
        return False
    return [name for (name,) in columns] == list(TABLES["projection"][1])


def _grow(target: Path, source: sqlite3.Connection, until: int | None = None) -> int:
    with closing(sqlite3.connect(target)) as connection:
        views = sqlite_utils.Database(connection)
        with views.atomic():
            for name, (key, columns) in TABLES.items():
                views.table(name).create(dict(columns), pk=key, if_not_exists=True)
        return _fill(views, source, until)


def _continues(source: sqlite3.Connection, target: Path) -> bool:
    """Return whether the file shows the beginning of this very ledger."""
    try:
        with closing(sqlite3.connect(target)) as file:
            row = file.execute("SELECT version, seq, head FROM projection").fetchone()
        return (
            row is not None and row[:2] <= (VERSION, newest(source)) and row == mark(source, row[1])
        )
    except (LedgerError, *FILE_ERRORS):
        return False


def build(source: sqlite3.Connection, target: Path, *, until: int) -> int:
    """Make the tables of the events up to `until` in a new file; return the last event shown.

    Raises:
        LedgerError: the ledger was changed.
    """
    return _grow(target, source, until)


def mark(source: sqlite3.Connection, seq: int) -> tuple[int, int, str]:
    """Return what a views file says of its end: version, last event, and the chain there."""
    return VERSION, seq, strict_base64.encode(head_at(source, seq))


def _fill(views: sqlite_utils.Database, source: sqlite3.Connection, until: int | None) -> int:
    before = next(iter(views["projection"].rows), {"seq": 0})["seq"]
    last = before
    events = takewhile(lambda row: until is None or row.seq <= until, recorded(source, before))
    while True:
        groups: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
        for count, row in enumerate(events, 1):
            for table, values in _rows(row):
                groups[table, *values].append(values)
            last = row.seq
            if count == GROUP:
                break
        if last == before:
            return int(last)
        version, seq, head = mark(source, last)
        with views.atomic():
            for (table, *_), rows in groups.items():
                views.table(table).upsert_all(rows, pk=TABLES[table][0])
            end = {"version": version, "seq": seq, "head": head}
            views.table("projection").upsert(end, pk="version")
        before = last


def _rows(row: Recorded) -> Iterator[_Row]:
    """Give what one event adds or changes: a table and some of a row's columns."""
    event, data = row.event, row.event.data
    base: _Values = {"seq": row.seq, "assignment": event.assignment}
    timed = base | {"at": event.at}
    key: _Values
    told: _Values
    match data:
        case e.CommandAccepted():
            told = {"type": data.type, "id": data.id, "issuer": data.issuer, "sha256": data.sha256}
            yield "commands", timed | {"outcome": "accepted", "code": None} | told
        case e.CommandRefused():
            told = {"type": None, "id": data.id, "issuer": None, "sha256": data.digest}
            yield "commands", timed | {"outcome": "refused", "code": data.code} | told
        case e.AssignmentCreated() | e.LocalJob():
            yield "assignments", _assignment(row.seq, event)
        case e.AssignmentEnded():
            low, high = data.interval or (None, None)
            told = {"ended_at": event.at, "reason": data.reason, "champion": data.champion}
            told |= {"gain": data.gain, "low": low, "high": high}
            yield "assignments", {"id": event.assignment} | told
        case e.AttemptStarted():
            told = {"lane": event.lane, "proposal": data.proposal, "base": data.base}
            yield "attempts", timed | {"attempt": data.attempt} | told
        case e.CandidateSubmitted():
            key = {"assignment": event.assignment, "attempt": data.attempt}
            yield "attempts", key | {"commit": data.commit, "tree": data.tree}
        case e.AttemptEnded():
            key = {"assignment": event.assignment, "attempt": data.attempt}
            yield "attempts", key | {"result": data.result}
        case e.BudgetSpent():
            for what, amount in data.amounts.items():
                told = {"attempt": data.attempt, "agent": data.agent}
                yield "budgets", base | told | {"what": what, "amount": amount}
        case _:
            yield from _judged(base, timed, data)


def _judged(base: dict[str, Any], timed: dict[str, Any], data: object) -> Iterator[_Row]:
    told: _Values
    match data:
        case e.Verdict():
            low, high = data.interval or (None, None)
            told = {"attempt": data.attempt, "tries": data.tries, "verdict": data.verdict}
            told |= {"gain": data.gain, "low": low, "high": high}
            yield "verdicts", timed | told | {"reasons": "\n".join(data.reasons)}
        case e.ChampionPromoted():
            low, high = data.interval
            told = {"attempt": data.attempt, "commit": data.commit, "previous": data.previous}
            yield "promotions", timed | told | {"gain": data.gain, "low": low, "high": high}
        case e.Block():
            told = {"attempt": data.attempt, "tries": data.tries, "stage": data.stage}
            told |= {"block": data.block, "D": data.D, "dropped": data.dropped}
            yield "blocks", base | told
        case e.Run():
            told = {"attempt": data.attempt, "tries": data.tries, "stage": data.stage}
            told |= {"block": data.block, "cell": data.cell, "arm": data.arm}
            t_ns = data.record.t_ns if data.record is not None else None
            told |= {"outcome": data.outcome, "t_ns": t_ns, "flags": ",".join(data.flags)}
            yield "runs", base | told
        case _:
            pass


class _Named(msgspec.Struct):
    name: str
    campaign: str


def _assignment(seq: int, event: e.Event) -> dict[str, Any]:
    data = event.data
    named = _Named("local", "judge")
    if isinstance(data, e.AssignmentCreated):
        named = msgspec.json.decode(data.contract, type=_Named)
    assert isinstance(data, e.AssignmentCreated | e.LocalJob)  # noqa: S101 (for the type checker)
    return {
        "id": event.assignment,
        "seq": seq,
        "at": event.at,
        "name": named.name,
        "campaign": named.campaign,
        "project": data.project.repo,
        "commit": data.project.commit,
        "kit": data.kit.repo if data.kit is not None else None,
    }
