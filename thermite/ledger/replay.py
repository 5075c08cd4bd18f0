"""Events back from the file, in order, each one's hash checked before it is decoded.

Source: ledger and signing, 3.3 (pages), 3.5 (unknown types) and 3.13, case 1.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from thermite.command import strict_base64
from thermite.errors import LedgerError
from thermite.ledger.chain import HASH_BYTES, genesis, leaf, link
from thermite.ledger.encode import decode
from thermite.ledger.reading import opened
from thermite.ledger.tables import FILE_ERRORS
from thermite.schema.event import ENVELOPES, Event
from thermite.schema.ids import is_hex32

PAGE_ROWS: Final = 10_000
"""Most rows of one read transaction: none holds the log for long (3.3)."""
PAGE_BYTES: Final = 16 << 20
"""Most body bytes of one page, so that a page of largest events does not fill the memory."""


class Stored(NamedTuple):
    """One row as it stands in the file, believed by nobody yet."""

    seq: int
    type: str
    body: bytes
    hash: bytes
    dedup: str | None


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
    for row in checked(source, after):
        yield Recorded(row.seq, row.type, decoded(row), row.body, row.hash)


def checked(source: sqlite3.Connection | Path, after: int = 0) -> Iterator[Stored]:
    """Give each row after `after` once its hash fits, whether or not its type is known.

    Raises:
        FileNotFoundError: there is no such file.
        LedgerError: the file is no ledger, is damaged, or an event's hash does not fit.
    """
    context = nullcontext(source) if isinstance(source, sqlite3.Connection) else opened(source)
    with context as connection:
        try:
            yield from _linked(connection, after)
        except FILE_ERRORS as error:
            raise LedgerError(f"the ledger is damaged: {error}; run thermite audit") from None


def _linked(connection: sqlite3.Connection, after: int) -> Iterator[Stored]:
    head = head_at(connection, after)
    for row in stored(connection, after):
        head = link(head, row.seq, leaf(row.body))
        if row.seq != after + 1 or row.hash != head:
            raise LedgerError(
                f"event {row.seq} does not fit the hash before it: the ledger was changed;"
                " run thermite audit"
            )
        after = row.seq
        yield row


def stored(
    connection: sqlite3.Connection,
    after: int = 0,
    *,
    page_rows: int = PAGE_ROWS,
    page_bytes: int = PAGE_BYTES,
) -> Iterator[Stored]:
    """Give each row after `after` as it stands, a page at a time.

    Raises:
        LedgerError: a row holds what no ledger's row can hold.
        sqlite3.Error: the file is damaged.
    """
    while True:
        page = _page(connection, after, page_rows, page_bytes)
        if not page:
            return
        yield from page
        after = page[-1].seq


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
    row = next(iter(_page(connection, 0, 1, PAGE_BYTES)), None)
    if row is None or row.seq != 1:
        raise LedgerError("the ledger is empty: it has no event 1")
    try:
        said = msgspec.json.decode(row.body, type=_First).data
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


def _page(connection: sqlite3.Connection, after: int, most: int, most_bytes: int) -> list[Stored]:
    rows = connection.execute(
        "SELECT seq, type, body, hash, dedup FROM events WHERE seq > ? ORDER BY seq LIMIT ?",
        (after, most),
    )
    page: list[Stored] = []
    taken = 0
    for row in rows:
        page.append(_stored(row))
        taken += len(page[-1].body)
        if taken > most_bytes:
            break
    rows.close()  # ends the read transaction, also after an early break
    return page


def _stored(row: tuple[object, ...]) -> Stored:
    seq, kind, body, digest, dedup = row
    if (
        isinstance(seq, int)
        and isinstance(kind, str)
        and isinstance(body, bytes)
        and isinstance(digest, bytes)
        and (dedup is None or isinstance(dedup, str))
    ):
        return Stored(seq, kind, body, digest, dedup)
    raise LedgerError(f"row {seq!r:.20} of the ledger holds a value of a wrong kind")
