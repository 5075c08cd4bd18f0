"""Groups of events to the disk, one transaction each; `append` decides whose turn it is.

What is written and what is remembered move together: a transaction that fails takes the
tree and the head back to what is durable. After a disk's error nothing is accepted any
more, since what the disk holds is only known after a new open.

Source: ledger and signing, 3.3 (writer connection, `dedup`) and 3.4 (checkpoints).
"""

import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from thermite.command.instant import read_instant
from thermite.command.note import Checkpoint, read_note, sign_note
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError, LedgerUnavailableError
from thermite.ledger import tables
from thermite.ledger.chain import link
from thermite.ledger.checkpoint import MOST_BETWEEN, is_due, is_old, minute_after, sure_time
from thermite.ledger.encode import Row
from thermite.ledger.opening import Standing

_CODE_MASK = 0xFF  # SQLite's extended codes keep the plain one in their low byte


class Waiting:
    """One caller's list on its way to the disk, and what became of it."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.bytes = sum(len(row.body) for row in rows)
        self.seqs: list[int] = []
        self.problem: LedgerError | None = None
        self.done = False


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

    def _transact(self, put: Callable[[], Sequence[tuple[int, str]]]) -> None:
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
            for size, note in notes:
                self._connection.execute(
                    "INSERT INTO checkpoints VALUES (?, ?)", (size, note.encode())
                )
            self._connection.execute("COMMIT")
            durable = True
        except sqlite3.Error as error:
            raise self._refused(error) from None
        finally:
            if not durable:
                self._go_back(begun=begun)
        self._publish(notes)

    def _publish(self, notes: Sequence[tuple[int, str]]) -> None:
        standing = self.standing
        if notes:
            standing.noted, standing.note = notes[-1]
            standing.noted_at = read_instant(read_note(standing.note).time)
            self._fresh = minute_after(standing.noted_at)
        self.size, self.head = standing.tree.size, standing.head

    def _put(self, group: Sequence[Waiting]) -> list[tuple[int, str]]:
        """Insert the new events of a group and return the notes that are due."""
        placed: list[Row] = []
        keyed: dict[str, tuple[int, bytes]] = {}
        for waiting in group:
            self._place(waiting, placed, keyed)
        return self._insert(placed) if placed else []

    def _place(
        self, waiting: Waiting, placed: list[Row], keyed: dict[str, tuple[int, bytes]]
    ) -> None:
        """Number a list's new events after those placed before, or say why it can't be.

        Args:
            waiting: the list.
            placed: the group's new events so far.
            keyed: those of them that may happen only once: key to number and body.
        """
        new: list[Row] = []
        mine: dict[str, tuple[int, bytes]] = {}
        for row in waiting.rows:
            seq = self.size + len(placed) + len(new) + 1
            if row.dedup is not None:
                first = mine.get(row.dedup) or keyed.get(row.dedup) or self._stored(row.dedup)
                if first is not None and _data_of(first[1]) != _data_of(row.body):
                    waiting.problem = LedgerError(
                        f"dedup conflict: event {first[0]} is {row.dedup} with other data, and it"
                        " may happen only once"
                    )
                    return
                if first is not None:
                    waiting.seqs.append(first[0])
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

    def _insert(self, placed: Sequence[Row]) -> list[tuple[int, str]]:
        """Write the placed events and return the notes that are due, signed."""
        standing, tree, head, fresh = self.standing, self.standing.tree, self.head, self._fresh
        rows = []
        notes = []
        noted, seq, due = standing.noted, tree.size, False
        for kind, body, leaf, dedup, at in placed:
            seq += 1
            standing.head = head = link(head, seq, leaf)
            tree.append(leaf)
            rows.append((seq, kind, body, head, dedup))
            due = due or is_due(kind, at, fresh)
            if seq - noted == MOST_BETWEEN:
                notes.append(self._signed())
                noted, due = seq, False
        if due:
            notes.append(self._signed())
        self._connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
        return notes

    def _signed(self) -> tuple[int, str]:
        standing, opened = self.standing, self.standing.opened
        size = standing.tree.size
        root = standing.tree.root(size)
        said = Checkpoint(
            opened.rig, opened.ledger, size, root, standing.head, sure_time(self._now())
        )
        return size, sign_note(said, self._rig_key)

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
