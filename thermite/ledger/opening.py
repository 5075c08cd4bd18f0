"""Make a ledger's file, and look at one before anything is written to it.

Source: ledger and signing, 3.3, At open. A file that is not in order is left as it is.
"""

import shlex
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from thermite.command.instant import read_instant
from thermite.command.note import Checkpoint, open_note
from thermite.command.public_key import PublicKey
from thermite.errors import LedgerError, LedgerUnavailableError
from thermite.ledger import tables
from thermite.ledger.disk import refused
from thermite.ledger.encode import Row
from thermite.ledger.merkle import Tree
from thermite.ledger.place import filesystem_problem
from thermite.ledger.reading import opened
from thermite.ledger.replay import Opening, Stored, check_known, decoded, linked, opening
from thermite.ledger.whole import made_whole
from thermite.schema.event import ENVELOPES


@dataclass
class Standing:
    """Where a ledger stands: whose it is, the tree and head over all its events, and the note.

    note: the newest checkpoint's text; noted: its size; noted_at: its time.
    """

    opened: Opening
    tree: Tree
    head: bytes
    note: str
    noted: int
    noted_at: datetime


def make_file(path: Path, first: Row, head: bytes, note: str) -> None:
    """Make a ledger that holds event 1 and its checkpoint, whole or not at all.

    Raises:
        LedgerError: there is a file already, or none can be made; LedgerUnavailableError: its disk
            has no room for one, or fails.
    """
    if path.exists():
        raise LedgerError(f"there is a ledger at {path} already: open it, or choose another place")
    try:
        with made_whole(path) as new, closing(sqlite3.connect(new, isolation_level=None)) as file:
            _fill(file, first, head, note)
    except OSError as error:
        raise refused(f"{path} can't be made", error, path.parent) from None
    except sqlite3.Error as error:
        said = f"{path} can't be made: {error}"
        if tables.is_of_the_disk(error):
            said += f": make room in {path.parent}, or look after its disk"
            raise LedgerUnavailableError(said) from None
        raise LedgerError(said) from None


def look(path: Path, rig_key: PublicKey, witnessed: int) -> Standing:
    """Check a whole ledger without writing to it, and return where it stands.

    Args:
        path: the file.
        rig_key: the rig's public key, which event 1 must name.
        witnessed: the largest size that a receipt in the outbox names; 0 when there is none.

    Raises:
        FileNotFoundError: there is no such file.
        LedgerError: it must not be written to; the text says why.
    """
    check_place(path)
    with opened(path) as connection:
        try:
            return _look(connection, path, rig_key, witnessed)
        except tables.FILE_ERRORS as error:
            raise LedgerError(f"{path} is damaged: {error}; restore a backup") from None


def check_place(path: Path) -> None:
    """Refuse a ledger on a network filesystem.

    Raises:
        LedgerError: with the filesystem's type.
    """
    problem = filesystem_problem(path)
    if problem is not None:
        raise LedgerError(problem)


def _look(
    connection: sqlite3.Connection, path: Path, rig_key: PublicKey, witnessed: int
) -> Standing:
    unlike = tables.unlike_schema(connection)
    if unlike:
        raise LedgerError(f"{path} was changed: {'; '.join(unlike)}; run thermite audit")
    sound = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if sound != "ok":
        raise LedgerError(f"{path} is damaged: {sound}; restore a backup")
    said, key = opening(connection)
    if key != rig_key.raw:
        raise LedgerError(
            f"{path} is the ledger of rig {said.rig}, and this rig's key is that of"
            f" {rig_key.id}: use the key that made it"
        )
    tree, head, newest = _rehash(connection)
    decoded(newest)
    if tree.size < witnessed:
        raise LedgerError(
            f"the ledger ends at event {tree.size}, and a receipt names event {witnessed}:"
            " refuse to write; put a backup back that holds it, or give the events up with thermite"
            f" ledger accept-loss {shlex.quote(str(path.parent))}"
        )
    note, noted = _newest_note(connection, tree, rig_key)
    return Standing(said, tree, head, note, noted.size, read_instant(noted.time))


def _rehash(connection: sqlite3.Connection) -> tuple[Tree, bytes, Stored]:
    """Rehash every event: the tree needs every leaf, so none is taken on trust.

    An event of a newer version anywhere is found here, before a writer has left its log beside
    a file that it may not go on with.
    """
    tree = Tree()
    newest: Stored | None = None
    for page in linked(connection):
        if not ENVELOPES.keys() >= {*page.types}:
            for row in page.rows():
                check_known(row)
        tree.extend(page.leaves)
        newest = page.last()
    if newest is None:
        raise LedgerError("the ledger is empty: it has no event 1")
    return tree, newest.hash, newest


def _newest_note(
    connection: sqlite3.Connection, tree: Tree, rig_key: PublicKey
) -> tuple[str, Checkpoint]:
    """Return the newest checkpoint and what it says, once it fits the events below it."""
    row = connection.execute(
        "SELECT size, note FROM checkpoints ORDER BY size DESC LIMIT 1"
    ).fetchone()
    if row is None:
        raise LedgerError("the ledger has no checkpoint: run thermite audit")
    size, raw = row
    note = raw.decode("utf-8", "replace") if isinstance(raw, bytes) else ""
    said = open_note(note, rig_key)
    if said.size != size or size > tree.size:
        raise LedgerError(
            f"the ledger ends at event {tree.size}, and its newest checkpoint names event"
            f" {said.size}: run thermite audit"
        )
    digest = connection.execute("SELECT hash FROM events WHERE seq = ?", (size,)).fetchone()[0]
    if said.root != tree.root(size) or said.head != digest:
        raise LedgerError(
            f"the checkpoint at event {size} does not fit the events: run thermite audit"
        )
    return note, said


def _fill(connection: sqlite3.Connection, first: Row, head: bytes, note: str) -> None:
    tables.make_tables(connection)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO events VALUES (1, ?, ?, ?, ?)", (first.type, first.body, head, first.dedup)
    )
    connection.execute("INSERT INTO checkpoints VALUES (1, ?)", (note.encode(),))
    connection.execute("COMMIT")
