"""Groups of events to the disk, one transaction each; `append` decides whose turn it is.

What is written and what is remembered move together: a transaction that fails takes the
tree and the head back to what is durable. After a disk's error nothing is accepted any
more, since what the disk holds is only known after a new open.

Source: ledger and signing, 3.3 (writer connection, `dedup`) and 3.4 (checkpoints).
"""

import sqlite3
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from thermite.command.instant import read_instant
from thermite.command.note import Checkpoint, sign_note
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerBusyError, LedgerError, LedgerUnavailableError
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
from thermite.ledger.encode import Row, Rows
from thermite.ledger.opening import Standing

_MOST_AT_ONCE: Final = 64
"""Most rows of one INSERT. A statement that fires a trigger keeps a journal of its own to go back
by, which costs a fifth of a row: at 64 rows nothing is left of it, and more gain no more."""
_FEW: Final = 5
"""Fewer rows take less time one by one: those of one INSERT go through a table of its own."""
_INSERT_LONE: Final = "INSERT INTO events VALUES (?, ?, ?, ?, NULL)"


@cache
def _insertion(rows: int, *, keyed: bool) -> str:
    """Return the statement that inserts so many events, with a key each or none.

    For most events there is none, and to hand over None takes Python's module as long as a hash,
    since it looks for somebody who adapts it.
    """
    one = "(?, ?, ?, ?, ?)" if keyed else "(?, ?, ?, ?, NULL)"
    return "INSERT INTO events VALUES " + ", ".join([one] * rows)  # noqa: S608 (marks alone)


class Waiting:
    """One caller's list on its way to the disk, and what became of it."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.bytes = sum(map(len, rows.bodies))
        self.seqs: list[int] = []
        self.problem: LedgerError | None = None
        self.done = False
        self._bell = threading.Lock()
        self._bell.acquire()

    def wait(self) -> None:
        """Wait until somebody wakes this caller: its list is written, or it leads now."""
        self._bell.acquire()

    def wake(self) -> None:
        """Let the caller go on; twice is once."""
        if self._bell.locked():
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
        self._inserter = self._connection.cursor()
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

    def insert_lone(self, row: Row) -> int:
        """Write an event that needs nothing in its transaction but itself; return its number, or 0.

        It does what `write` does for a group, in less time: an INSERT by itself is a transaction,
        a campaign's events mostly come one by one, and each waits for its sync.

        Raises:
            LedgerError: another program holds the file for longer than 5 s.
            LedgerUnavailableError: the disk refused.
        """
        if (
            row.dedup is not None
            or self.size + 1 - self.standing.noted >= MOST_BETWEEN
            or is_due(row.type, row.at, self._fresh)
        ):
            return 0
        self._check_available()
        seq, standing = self.size + 1, self.standing
        begun = durable = False
        try:
            standing.head = link(self.head, seq, row.leaf)
            standing.tree.append(row.leaf)  # before the sync, after which every cache is cold
            values = seq, row.type, row.body, standing.head
            begun = True
            self._inserter.execute(_INSERT_LONE, values)
            durable = True
        except sqlite3.Error as error:
            begun = False  # it went back by itself
            raise self._refused(error) from None
        finally:
            if not durable:
                self._go_back(begun=begun)
        self.size, self.head = seq, standing.head
        return seq

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

    def doubt(self) -> None:
        """Accept nothing any more: what became of a group is not known."""
        self.problem = self.problem or "it was interrupted"

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
            self._publish(notes)
            durable = True
        except sqlite3.Error as error:
            raise self._refused(error) from None
        finally:
            if not durable:
                self._go_back(begun=begun)

    def _publish(self, notes: Sequence[_Note]) -> None:
        standing = self.standing
        if notes:
            standing.noted, standing.note, standing.noted_at = notes[-1]
            self._fresh = minute_after(standing.noted_at)
        self.size, self.head = standing.tree.size, standing.head

    def _put(self, group: Sequence[Waiting]) -> list[_Note]:
        """Insert the new events of a group and return the notes that are due."""
        first = self.size + 1
        if len(group) == 1 and not any(group[0].rows.dedups):
            group[0].seqs = [*range(first, first + len(group[0].rows.bodies))]
            return self._insert(group[0].rows)
        placed = Rows.of(())
        keyed: dict[str, tuple[int, bytes]] = {}
        for waiting in group:
            self._place(waiting, placed, keyed)
        return self._insert(placed)

    def _place(self, waiting: Waiting, placed: Rows, keyed: dict[str, tuple[int, bytes]]) -> None:
        """Number a list's new events after those placed before, or say why it can't be.

        Args:
            waiting: the list.
            placed: the group's new events so far.
            keyed: those of them that may happen only once: key to number and body.
        """
        first = self.size + len(placed.bodies) + 1
        if not any(waiting.rows.dedups):
            placed.extend(waiting.rows)
            waiting.seqs = [*range(first, first + len(waiting.rows.bodies))]
            return
        new: list[Row] = []
        mine: dict[str, tuple[int, bytes]] = {}
        for row in map(Row, *waiting.rows):
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
        placed.extend(Rows.of(new))
        keyed |= mine

    def _stored(self, dedup: str) -> tuple[int, bytes] | None:
        """Return number and body of the stored event with a key, or None."""
        found: tuple[int, bytes] | None = self._connection.execute(
            "SELECT seq, body FROM events WHERE dedup = ?", (dedup,)
        ).fetchone()
        return found

    def _insert(self, placed: Rows) -> list[_Note]:
        """Write the placed events and return the notes that are due, signed."""
        standing = self.standing
        heads: list[bytes] = []
        notes: list[_Note] = []
        noted, seq, at = standing.noted, standing.tree.size, 0
        first, many = seq + 1, len(placed.bodies)
        while at < many:
            part = slice(at, at + noted + MOST_BETWEEN - seq)
            hashed = placed.leaves[part]
            heads += links(standing.head, seq + 1, hashed)
            standing.tree.extend(hashed)
            standing.head = heads[-1]
            at, seq = at + len(hashed), seq + len(hashed)
            if seq - noted == MOST_BETWEEN or are_due(
                placed.types[part], placed.times[part], self._fresh
            ):
                notes.append(self._signed())
                noted = seq
        self._insert_rows(first, placed, heads)
        return notes

    def _insert_rows(self, first: int, placed: Rows, heads: Sequence[bytes]) -> None:
        """Insert the placed events from number `first` on, many by one statement."""
        keyed = any(placed.dedups)
        numbers, dedups = range(first, first + len(heads)), [placed.dedups] if keyed else []
        rows = zip(numbers, placed.types, placed.bodies, heads, *dedups, strict=True)
        for left in range(len(heads), _FEW - 1, -_MOST_AT_ONCE):
            some = islice(rows, min(left, _MOST_AT_ONCE))
            statement = _insertion(min(left, _MOST_AT_ONCE), keyed=keyed)
            self._connection.execute(statement, [*chain.from_iterable(some)])
        self._connection.executemany(_insertion(1, keyed=keyed), rows)

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
        self._connection.check_interrupt(error)
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & tables.PLAIN_CODE
        if code == sqlite3.SQLITE_BUSY:
            return LedgerBusyError("another program holds the ledger for writing: end it")
        self.problem = f"{error} ({getattr(error, 'sqlite_errorname', 'no code')})"
        remedy = "make room" if code == sqlite3.SQLITE_FULL else "look after the disk"
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
