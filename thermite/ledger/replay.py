"""Events back from the file, in order, each one's hash checked before it is decoded.

Source: ledger and signing, 3.3 (pages), 3.5 (unknown types) and 3.13, case 1.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import repeat
from operator import eq
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias, cast

import msgspec

from thermite.command import strict_base64
from thermite.errors import LedgerError
from thermite.ledger.chain import HASH_BYTES, genesis, leaves, links
from thermite.ledger.encode import decode, decode_all
from thermite.ledger.reading import opened
from thermite.ledger.tables import FILE_ERRORS, page_of
from thermite.schema.event import ENVELOPES, Event
from thermite.schema.ids import is_hex32

PAGE_ROWS: Final = 256
"""Most rows of one read transaction: none holds the log for long (3.3 allows 10,000).
Their hashes are checked together, and so few still fit a processor's cache; a power of two, so
that each full page is one subtree of the tree over all events."""
PAGE_BYTES: Final = 16 << 20
"""Most body bytes of one page, so that a page of largest events does not fill the memory."""
_Row: TypeAlias = tuple[int, str, bytes, bytes]
_KINDS: Final = (int, str, bytes, bytes)
"""Of each column of a row, what its values are."""
_MOST_TYPE: Final = 200
"""Longest type of an event, characters: no hash holds it, and ours have a tenth (our figure)."""


class Stored(NamedTuple):
    """One row as it stands in the file, believed by nobody yet."""

    seq: int
    type: str
    body: bytes
    hash: bytes


class Recorded(NamedTuple):
    """One event of the ledger; body: its exact bytes; hash: the chain's hash up to it."""

    seq: int
    type: str
    event: Event
    body: bytes
    hash: bytes


class Opening(msgspec.Struct):
    """What event 1 must say of its ledger, whatever version wrote the rest of it."""

    ledger: str
    rig: str
    rig_key: str


class _First(msgspec.Struct, tag="ledger_opened", tag_field="type"):
    data: Opening


def recorded(source: sqlite3.Connection | Path, after: int = 0) -> Iterator[Recorded]:
    """Give each event after `after`, in the order of the ledger.

    Raises:
        FileNotFoundError: there is no such file.
        LedgerError: the file is no ledger; an event's hash does not fit; or an event is of
            a type that this version does not know.
    """
    for page in _checked(source, after):
        events: Iterable[Event] = decode_all(page.bodies) or ()
        if [*map(type, events)] != [*map(ENVELOPES.get, page.types)]:
            events = map(decoded, page.rows())  # up to the one that can't be
        whole = zip(page.seqs, page.types, events, page.bodies, page.hashes, strict=True)
        yield from map(tuple.__new__, repeat(Recorded), whole)  # what `_make` does, in C


def checked(source: sqlite3.Connection | Path, after: int = 0) -> Iterator[Stored]:
    """Give each row after `after` once its hash fits, whether or not its type is known.

    Raises:
        FileNotFoundError: there is no such file.
        LedgerError: the file is no ledger, is damaged, or an event's hash does not fit.
    """
    for page in _checked(source, after):
        yield from page.rows()


class Linked(NamedTuple):
    """Rows whose hashes fit, as they stand, column by column, and their leaf hashes."""

    seqs: Sequence[int]
    types: Sequence[str]
    bodies: Sequence[bytes]
    hashes: Sequence[bytes]
    leaves: Sequence[bytes]

    def rows(self) -> Iterator[Stored]:
        """Give them one by one."""
        return map(Stored, self.seqs, self.types, self.bodies, self.hashes)

    def first(self, count: int) -> "Linked":
        """Return the first so many of them."""
        return Linked(
            self.seqs[:count],
            self.types[:count],
            self.bodies[:count],
            self.hashes[:count],
            self.leaves[:count],
        )

    def last(self) -> Stored:
        """Return the last of them; there must be one."""
        return Stored(self.seqs[-1], self.types[-1], self.bodies[-1], self.hashes[-1])


def _checked(source: sqlite3.Connection | Path, after: int) -> Iterator[Linked]:
    context = nullcontext(source) if isinstance(source, sqlite3.Connection) else opened(source)
    with context as connection:
        try:
            yield from linked(connection, after)
        except FILE_ERRORS as error:
            raise LedgerError(f"the ledger is damaged: {error}; run thermite audit") from None


def linked(
    connection: sqlite3.Connection,
    after: int = 0,
    *,
    page_rows: int = PAGE_ROWS,
    page_bytes: int = PAGE_BYTES,
) -> Iterator[Linked]:
    """Give the rows after `after`, many at a time, up to the first whose hash does not fit.

    Raises:
        LedgerError: a row's hash does not fit, or it holds what no ledger's row can hold.
        sqlite3.Error: the file is damaged.
    """
    head = head_at(connection, after)
    for page in _pages(connection, after, page_rows, page_bytes):
        columns = _columns(page)
        hashed = leaves(columns.bodies)
        heads = links(head, after + 1, hashed)
        wanted = range(after + 1, after + 1 + len(page))
        found = Linked(*columns, hashed)
        if found.seqs != (*wanted,) or found.hashes != (*heads,):
            pairs = zip(found.seqs, found.hashes, strict=True)
            fitting = [*map(eq, pairs, zip(wanted, heads, strict=True))].index(False)
            if fitting:
                yield found.first(fitting)
            raise LedgerError(
                f"event {found.seqs[fitting]} does not fit the hash before it: the ledger was"
                " changed; run thermite audit"
            )
        yield found
        head, after = heads[-1], after + len(page)


def _pages(
    connection: sqlite3.Connection, after: int, most: int, most_bytes: int
) -> Iterator[list[_Row]]:
    while page := _page(connection, after, most, most_bytes):
        yield page
        after = page[-1][0]


def check_known(row: Stored) -> None:
    """Refuse an event of a type that only a newer version knows.

    Raises:
        LedgerError: in the words of ledger and signing, 3.5.
    """
    if row.type not in ENVELOPES:
        raise LedgerError(
            f"event {row.seq} is {row.type[:64]!a}, which this version does not know:"
            " upgrade Thermite"
        )


def decoded(row: Stored) -> Event:
    """Return a row's event.

    Raises:
        LedgerError: it is of an unknown type, or not what its type says.
    """
    try:
        event = decode(row.body)
    except ValueError as error:
        check_known(row)
        raise LedgerError(
            f"event {row.seq} ({row.type}) can't be read: {error}; upgrade Thermite if a newer one"
            " wrote it"
        ) from None
    if type(event) is not ENVELOPES.get(row.type):
        raise LedgerError(
            f"event {row.seq} is called {row.type[:64]!a}, and its body says otherwise: the"
            " ledger was changed; run thermite audit"
        )
    return event


def opening(connection: sqlite3.Connection) -> tuple[Opening, bytes]:
    """Return what event 1 says, and the rig's raw public key.

    Raises:
        LedgerError: there is no event 1, or it opens no ledger.
    """
    page = _page(connection, 0, 1, PAGE_BYTES)
    if not page or _columns(page).seqs != (1,):
        raise LedgerError("the ledger is empty: it has no event 1")
    try:
        said = msgspec.json.decode(page[0][2], type=_First).data
        key = strict_base64.decode(said.rig_key)
    except (ValueError, RecursionError) as error:
        raise LedgerError(f"event 1 opens no ledger: {error}") from None
    if len(key) != HASH_BYTES or not is_hex32(said.ledger) or not is_hex32(said.rig):
        raise LedgerError("event 1 opens no ledger: it names no ledger, rig and key")
    return said, key


def newest(source: sqlite3.Connection | Path) -> int:
    """Return the number of the last event; 0 when there is none.

    Raises:
        FileNotFoundError: there is no such file.
        LedgerError: the file is no ledger, or is damaged.
    """
    context = nullcontext(source) if isinstance(source, sqlite3.Connection) else opened(source)
    with context as connection:
        try:
            return int(connection.execute("SELECT max(seq) FROM events").fetchone()[0] or 0)
        except FILE_ERRORS as error:
            raise LedgerError(f"the ledger is damaged: {error}; run thermite audit") from None


def head_at(connection: sqlite3.Connection, seq: int) -> bytes:
    """Return the chain's hash at an event, as stored; for 0 the genesis hash.

    Raises:
        LedgerError: the ledger has no such event.
    """
    if seq == 0:
        said, key = opening(connection)
        return genesis(said.ledger, key)
    found = connection.execute("SELECT hash FROM events WHERE seq = ?", (seq,)).fetchone()
    if found is None or not isinstance(found[0], bytes):
        raise LedgerError(f"the ledger has no event {seq}")
    return found[0]


def _page(connection: sqlite3.Connection, after: int, most: int, most_bytes: int) -> list[_Row]:
    select = "SELECT seq, type, body, hash FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
    page, problem = page_of(connection, select, (after, most), most_bytes)
    if problem is not None:
        raise problem
    return cast("list[_Row]", page)


class _Columns(NamedTuple):
    seqs: tuple[int, ...]
    types: tuple[str, ...]
    bodies: tuple[bytes, ...]
    hashes: tuple[bytes, ...]


def _columns(page: Sequence[_Row]) -> _Columns:
    """Return rows column by column.

    Raises:
        LedgerError: a value is not of the kind that ours are; with its row's number.
    """
    columns = _Columns(*zip(*page, strict=True))
    for column, kind in zip(columns, _KINDS, strict=True):
        if set(map(type, column)) != {kind}:
            at = next(n for n, value in enumerate(column) if type(value) is not kind)
            raise LedgerError(
                f"row {page[at][0]!r:.20} of the ledger holds a value of a wrong kind"
            )
    if max(map(len, columns.types)) > _MOST_TYPE:
        raise LedgerError("a row of the ledger has a type that is too long: run thermite audit")
    return columns
