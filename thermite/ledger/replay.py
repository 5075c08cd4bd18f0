"""Events back from the file, in order, each one's hash checked before it is decoded.

Source: ledger and signing, 3.3 (pages), 3.5 (unknown types) and 3.13, case 1.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec

from thermite.command import strict_base64
from thermite.errors import LedgerError
from thermite.ledger.chain import HASH_BYTES, genesis, leaves, links
from thermite.ledger.encode import decode, decode_all
from thermite.ledger.reading import opened
from thermite.ledger.tables import FILE_ERRORS
from thermite.schema.event import ENVELOPES, Event
from thermite.schema.ids import is_hex32

PAGE_ROWS: Final = 250
"""Most rows of one read transaction: none holds the log for long (3.3 allows 10,000).
Their hashes are checked together, and so few still fit a processor's cache."""
PAGE_BYTES: Final = 16 << 20
"""Most body bytes of one page, so that a page of largest events does not fill the memory."""
_Row: TypeAlias = tuple[int, str, bytes, bytes]
_KINDS: Final = (int, str, bytes, bytes)
"""Of each column of a row, what its values are."""


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
    for block in _checked(source, after):
        seqs, kinds, bodies, hashes = zip(*block, strict=True)
        events: Iterable[Event] = decode_all(bodies) or ()
        if [*map(type, events)] != [ENVELOPES.get(kind) for kind in kinds]:
            events = (decoded(Stored(*row)) for row in block)  # up to the one that can't be
        yield from map(Recorded._make, zip(seqs, kinds, events, bodies, hashes, strict=True))


def checked(source: sqlite3.Connection | Path, after: int = 0) -> Iterator[Stored]:
    """Give each row after `after` once its hash fits, whether or not its type is known.

    Raises:
        FileNotFoundError: there is no such file.
        LedgerError: the file is no ledger, is damaged, or an event's hash does not fit.
    """
    for block in _checked(source, after):
        yield from map(Stored._make, block)


class Linked(NamedTuple):
    """Rows whose hashes fit, as they stand, and their leaf hashes."""

    rows: Sequence[_Row]
    leaves: Sequence[bytes]


def _checked(source: sqlite3.Connection | Path, after: int) -> Iterator[Sequence[_Row]]:
    context = nullcontext(source) if isinstance(source, sqlite3.Connection) else opened(source)
    with context as connection:
        try:
            for page in linked(connection, after):
                yield page.rows
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
        hashed = leaves([row[2] for row in page])
        heads = links(head, after + 1, hashed)
        fitting = _fitting(page, after + 1, heads)
        if fitting:
            yield Linked(page[:fitting], hashed[:fitting])
        if fitting < len(page):
            raise LedgerError(
                f"event {page[fitting][0]} does not fit the hash before it: the ledger was"
                " changed; run thermite audit"
            )
        head, after = heads[-1], after + len(page)


def _fitting(block: Sequence[_Row], first: int, heads: Sequence[bytes]) -> int:
    """Return how many rows from the first on have the number and the hash that they should."""
    wanted = [*zip(range(first, first + len(block)), heads, strict=True)]
    found = [(row[0], row[3]) for row in block]
    if found == wanted:
        return len(block)
    return next(at for at, pair in enumerate(found) if pair != wanted[at])


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
    if not page or page[0][0] != 1:
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
    rows = connection.execute(
        "SELECT seq, type, body, hash FROM events WHERE seq > ? ORDER BY seq LIMIT ?",
        (after, most),
    )
    page = []
    taken = 0
    with suppress(TypeError):  # a number has no length: such a row is refused below
        for row in rows:
            page.append(row)
            taken += len(row[2])
            if taken > most_bytes:
                break
    rows.close()  # ends the read transaction, also after an early break
    _check_kinds(page)
    return page


def _check_kinds(page: Sequence[_Row]) -> None:
    """Refuse rows whose values are not of the kinds that ours are: whole columns at a time."""
    for column, kind in zip(zip(*page, strict=True), _KINDS, strict=False):
        if set(map(type, column)) != {kind}:
            at = next(n for n, value in enumerate(column) if type(value) is not kind)
            raise LedgerError(
                f"row {page[at][0]!r:.20} of the ledger holds a value of a wrong kind"
            )
