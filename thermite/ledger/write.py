"""Groups of events to the disk, one transaction each; `append` decides whose turn it is.

What is written and what is remembered move together: a transaction that fails takes the
tree and the head back to what is durable. After a disk's error nothing is accepted any
more, since what the disk holds is only known after a new open.

Source: ledger and signing, 3.3 (writer connection, `dedup`) and 3.4 (checkpoints).
"""

import itertools
import sqlite3
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from thermite.command.instant import read_instant
from thermite.command.note import Checkpoint, sign_note
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError, LedgerUnavailableError
from thermite.ledger import tables
from thermite.ledger.chain import link, links
from thermite.ledger.checkpoint import (
    MOST_BETWEEN,
    are_due,
    is_due,
    is_old,
    minute_after,
    sure_time,
)
from thermite.ledger.encode import Row
from thermite.ledger.opening import Standing

_INSERT = "INSERT INTO events VALUES (?, ?, ?, ?, ?)"
_CODE_MASK = 0xFF  # SQLite's extended codes keep the plain one in their low byte


class Waiting:
    """One caller's list on its way to the disk, and what became of it."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.bytes = sum([len(row.body) for row in rows])
        self.seqs: list[int] = []
        self.problem: LedgerError | None = None
        self.done = False
        self._bell = threading.Lock()
        self._bell.acquire()

    def wait(self) -> None:
        """Wait until somebody wakes this caller: its list is written, or it leads now."""
        self._bell.acquire()

    def wake(self) -> None:
        """Let the caller go on; once for each of its waits, and once when it is done."""
        self._bell.release()


class _Note(NamedTuple):
    """A checkpoint that is due; at: its time."""

    size: int
    text: str
    at: datetime


class _Data(msgspec.Struct):
    data: msgspec.Raw


class Writer:
    """The writing connection and where the ledger stands; for one thread at a time.

    size, head: what is durable; `standing` runs ahead of it inside a transaction only.
    problem: why nothing can be written any more, or None.
    """

    def __init__(
        self, path: Path, standing: Standing, rig_key: SigningKey, now: Callable[[], str]
    ) -> None:
        self._connection, self._folder = tables.writer(path), path.parent
        self._rig_key, self._now = rig_key, now
        self.standing = standing
        self.size, self.head = standing.tree.size, standing.head
        self._fresh = minute_after(standing.noted_at)
        self.problem: str | None = None

    def write(self, group: Sequence[Waiting]) -> None:
        """Write the lists of a group in one transaction and tell each how it went."""
        problem: LedgerError | None = LedgerError("the append was interrupted")
        try:
            self._transact(partial(self._put, group))
            problem = None
        except LedgerError as error:
            problem = error
        finally:
            for waiting in group:
                waiting.problem = waiting.problem or problem
                waiting.done = True

    def sign_tail(self) -> None:
        """Sign where the ledger stands, unless the newest note says so already.

        Raises:
            LedgerUnavailableError: the disk refused.
        """
        self._check_available()
        if self.standing.noted != self.size:
            self._transact(lambda: [self._signed()])

    def is_tail_old(self) -> bool:
        """Return whether there are new events and the newest note is 60 s old."""
        standing = self.standing
        return standing.noted != self.size and is_old(standing.noted_at, self._now())

    def note_covering(self, seq: int) -> str | None:
        """Return the first stored checkpoint that covers an event, or None."""
        self._check_available()
        row = self._connection.execute(
            "SELECT note FROM checkpoints WHERE size >= ? ORDER BY size LIMIT 1", (seq,)
        ).fetchone()
        return None if row is None else str(row[0], "utf-8")

    def shut(self) -> None:
        """Close the connection for good; what is written stays."""
        self.problem = self.problem or "it is closed"
        self._connection.close()

    def _transact(self, put: Callable[[], Sequence[_Note]]) -> None:
        """Do the inserts of `put`, add the notes that it returns, and COMMIT, or go back.

        Raises:
            LedgerError: another program holds the file for longer than 5 s.
            LedgerUnavailableError: the disk refused.
        """
        self._check_available()
        begun = durable = False
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            begun = True
            notes = put()
            for note in notes:
                self._connection.execute(
                    "INSERT INTO checkpoints VALUES (?, ?)", (note.size, note.text.encode())
                )
            self._connection.execute("COMMIT")
            durable = True
        except sqlite3.Error as error:
            raise self._refused(error) from None
        finally:
            if not durable:
                self._go_back(begun=begun)
        self._publish(notes)

    def _publish(self, notes: Sequence[_Note]) -> None:
        standing = self.standing
        if notes:
            standing.noted, standing.note, standing.noted_at = notes[-1]
            self._fresh = minute_after(standing.noted_at)
        self.size, self.head = standing.tree.size, standing.head

    def _put(self, group: Sequence[Waiting]) -> list[_Note]:
        """Insert the new events of a group and return the notes that are due."""
        placed: list[Row] = []
        keyed: dict[str, tuple[int, bytes]] = {}
        for waiting in group:
            self._place(waiting, placed, keyed)
        return self._insert_one(placed[0]) if len(placed) == 1 else self._insert(placed)

    def _place(
        self, waiting: Waiting, placed: list[Row], keyed: dict[str, tuple[int, bytes]]
    ) -> None:
        """Number a list's new events after those placed before, or say why it can't be.

        Args:
            waiting: the list.
            placed: the group's new events so far.
            keyed: those of them that may happen only once: key to number and body.
        """
        first = self.size + len(placed) + 1
        if not [row for row in waiting.rows if row.dedup is not None]:
            placed += waiting.rows
            waiting.seqs = [*range(first, first + len(waiting.rows))]
            return
        new: list[Row] = []
        mine: dict[str, tuple[int, bytes]] = {}
        for row in waiting.rows:
            seq = first + len(new)
            if row.dedup is not None:
                known = mine.get(row.dedup) or keyed.get(row.dedup) or self._stored(row.dedup)
                if known is not None and _data_of(known[1]) != _data_of(row.body):
                    waiting.problem = LedgerError(
                        f"dedup conflict: event {known[0]} is {row.dedup} with other data, and it"
                        " may happen only once"
                    )
                    return
                if known is not None:
                    waiting.seqs.append(known[0])
                    continue
                mine[row.dedup] = seq, row.body
            new.append(row)
            waiting.seqs.append(seq)
        placed += new
        keyed |= mine

    def _stored(self, dedup: str) -> tuple[int, bytes] | None:
        """Return number and body of the stored event with a key, or None."""
        found: tuple[int, bytes] | None = self._connection.execute(
            "SELECT seq, body FROM events WHERE dedup = ?", (dedup,)
        ).fetchone()
        return found

    def _insert(self, placed: Sequence[Row]) -> list[_Note]:
        """Write the placed events and return the notes that are due, signed."""
        standing = self.standing
        rows: list[tuple[int, str, bytes, bytes, str | None]] = []
        notes: list[_Note] = []
        noted, seq, at = standing.noted, standing.tree.size, 0
        while at < len(placed):
            part = placed[at : at + noted + MOST_BETWEEN - seq]
            kinds, bodies, hashed, dedups, times = zip(*part, strict=True)
            heads = links(standing.head, seq + 1, hashed)
            rows += zip(itertools.count(seq + 1), kinds, bodies, heads, dedups, strict=False)
            standing.tree.extend(hashed)
            standing.head = heads[-1]
            at, seq = at + len(part), seq + len(part)
            if seq - noted == MOST_BETWEEN or are_due(kinds, times, self._fresh):
                notes.append(self._signed())
                noted = seq
        self._connection.executemany(_INSERT, rows)
        return notes

    def _insert_one(self, row: Row) -> list[_Note]:
        """Do what `_insert` does for the one event of a transaction, in half the time."""
        standing = self.standing
        seq = standing.tree.size + 1
        standing.head = link(standing.head, seq, row.leaf)
        standing.tree.append(row.leaf)
        self._connection.execute(_INSERT, (seq, row.type, row.body, standing.head, row.dedup))
        is_signed = seq - standing.noted == MOST_BETWEEN or is_due(row.type, row.at, self._fresh)
        return [self._signed()] if is_signed else []

    def _signed(self) -> _Note:
        standing, opened = self.standing, self.standing.opened
        size, time = standing.tree.size, sure_time(self._now())
        root = standing.tree.root(size)
        said = Checkpoint(opened.rig, opened.ledger, size, root, standing.head, time)
        return _Note(size, sign_note(said, self._rig_key), read_instant(time))

    def _check_available(self) -> None:
        if self.problem is not None:
            raise LedgerUnavailableError(f"ledger unavailable: {self.problem}")

    def _refused(self, error: sqlite3.Error) -> LedgerError:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if code & _CODE_MASK == sqlite3.SQLITE_BUSY:
            return LedgerError("another program holds the ledger for writing: end it")
        self.problem = f"{error} ({getattr(error, 'sqlite_errorname', 'no code')})"
        remedy = "make room" if code & _CODE_MASK == sqlite3.SQLITE_FULL else "look after the disk"
        return LedgerUnavailableError(
            f"ledger unavailable: {self.problem}; nothing was promised: {remedy} in {self._folder}"
        )

    def _go_back(self, *, begun: bool) -> None:
        """Forget what is not durable; when that is not known, accept nothing any more."""
        self.standing.tree.cut(self.size)
        self.standing.head = self.head
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            elif begun and self.problem is None:
                self.problem = "it was interrupted at a COMMIT"
        except sqlite3.Error as error:
            self.problem = self.problem or str(error)


def _data_of(body: bytes) -> bytes:
    return bytes(msgspec.json.decode(body, type=_Data).data)
