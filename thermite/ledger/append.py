"""The one writer of a ledger: events in, sequence numbers out, once they are durable.

Callers in many threads each hand in a list, which is one transaction together with
whatever else waits at that moment. The first one leads: it commits for all of them, and hands
the lead to the first of those that have come meanwhile (the room has no thread of its own).
A list is written whole or not at all.

Source: ledger and signing, 3.3 (group commit, at open) and 3.4 (checkpoints).
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

from thermite.command import strict_base64
from thermite.command.note import Checkpoint, sign_note
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError
from thermite.ledger.chain import genesis, link
from thermite.ledger.encode import Row, Rows, encode, encode_all
from thermite.ledger.opening import check_place, look, make_file
from thermite.ledger.place import WriterLock
from thermite.ledger.write import Waiting, Writer
from thermite.schema.event import Event, LedgerOpened

MOST_GROUP_EVENTS: Final = 1000
MOST_GROUP_BYTES: Final = 4 << 20
"""Where a transaction stops taking in more lists (3.3); one list is never split."""
GATHER_S: Final = 0.001
"""How long one that leads after a transaction of several lists waits for as many again, s. Those
who were told a moment ago come back within it, and would wait for a sync of their own else (64
threads: 30 in a transaction without it, about 46 with it); one caller alone never waits."""


class Ledger:
    """An open ledger that this process alone writes to; `create` and `open` make one."""

    def __init__(self, writer: Writer, lock: WriterLock) -> None:
        self._writer, self._lock = writer, lock
        self._turn = threading.Lock()  # who has it uses the writer
        self._door = threading.Lock()  # who has it uses the queue, for a moment
        self._queue: deque[Waiting] = deque()
        self._leader: Waiting | None = None
        self._group: list[Waiting] = []  # for whom the leader writes
        self._together = 1  # lists of the last transaction
        self._quorum = (
            threading.Lock()
        )  # let go of once as many wait; an Event breaks at interrupts
        self._quorum.acquire()
        self._open = True

    @classmethod
    def create(
        cls, path: Path, opened: Event, rig_key: SigningKey, *, now: Callable[[], str]
    ) -> Self:
        """Make a ledger whose event 1 is given, with its first checkpoint, and open it.

        Args:
            path: a file that does not exist, in a folder that does.
            opened: the complete `ledger_opened` event; it must name this key.
            rig_key: the rig's key, which signs checkpoints.
            now: gives the time, RFC 3339 in UTC, for checkpoints.

        Raises:
            LedgerError: there is a ledger already, or the event names another key.
        """
        check_place(path)
        with _locked(path) as lock:
            _make(path, opened, rig_key, now())
            standing = look(path, rig_key.public, 1)
            return cls(Writer(path, standing, rig_key, now), lock)

    @classmethod
    def open(
        cls, path: Path, rig_key: SigningKey, *, now: Callable[[], str], witnessed: int = 0
    ) -> Self:
        """Open a ledger for writing, after the checks of ledger and signing, 3.3.

        Args:
            path: the file.
            rig_key: the key that event 1 names.
            now: gives the time, RFC 3339 in UTC, for checkpoints.
            witnessed: the largest size that a receipt in the outbox names.

        Raises:
            FileNotFoundError: there is no such file.
            LedgerError: it must not be written to, or another process writes to it.
        """
        check_place(path)
        if not path.exists():
            raise FileNotFoundError(f"there is no ledger at {path}")
        with _locked(path) as lock:
            standing = look(path, rig_key.public, witnessed)
            return cls(Writer(path, standing, rig_key, now), lock)

    @property
    def size(self) -> int:
        """How many events are durable."""
        return self._writer.size

    @property
    def head(self) -> bytes:
        """The chain's hash over them, 32 bytes."""
        return self._writer.head

    @property
    def id(self) -> str:
        """The ledger's id, 32 hex digits."""
        return self._writer.standing.opened.ledger

    @property
    def problem(self) -> str | None:
        """Why nothing can be appended any more, or None."""
        return self._writer.problem

    def append(self, events: Sequence[Event]) -> list[int]:
        """Append events in one transaction and return their numbers once they are durable.

        An event that may happen only once, and is there with equal data, is not written
        again: its number is the first one's.

        Raises:
            LedgerError: an event can't be kept, or one that may happen only once is there
                with other data; nothing of the list is written.
            LedgerUnavailableError: the disk refused; nothing is accepted until a new open.
        """
        if len(events) == 1:
            row = encode(events[0])
            if self._leader is None and self._together == 1 and (seq := self._append_alone(row)):
                return [seq]
            waiting = Waiting(Rows.of([row]))
        else:
            waiting = Waiting(encode_all(events))
        return self._append_together(waiting)

    def _append_together(self, waiting: Waiting) -> list[int]:
        """Queue up, and write for all who wait or be written for."""
        try:
            with self._door:
                self._queue.append(waiting)
                if 1 < self._together <= len(self._queue) and self._quorum.locked():
                    self._quorum.release()
                self._leader = self._leader or waiting
                leads = self._leader is waiting
            while not (leads or waiting.done):
                waiting.wait()
                with self._door:
                    leads = self._leader is waiting
            if not waiting.done:
                self._lead()
        finally:
            if not waiting.done or self._leader is waiting:
                self._leave(waiting)
        if waiting.problem is not None:
            raise waiting.problem
        return waiting.seqs

    def checkpoint(self) -> str:
        """Sign where the ledger stands now, unless the newest note says so already.

        Raises:
            LedgerUnavailableError: the disk refused.
        """
        with self._turn:
            self._writer.sign_tail()
            return self._writer.standing.note

    def checkpoint_if_old(self) -> bool:
        """Sign new events that have waited for 60 s; to be called every few seconds.

        Raises:
            LedgerUnavailableError: the disk refused.
        """
        with self._turn:
            if not self._writer.is_tail_old():
                return False
            self._writer.sign_tail()
            return True

    def newest_note(self) -> str:
        """Return the text of the newest checkpoint."""
        return self._writer.standing.note

    def note_covering(self, seq: int) -> str | None:
        """Return the first stored checkpoint that covers an event, or None."""
        with self._turn:
            return self._writer.note_covering(seq)

    def root_at(self, size: int) -> bytes:
        """Return the Merkle root over the first `size` events.

        Raises:
            LedgerError: the ledger has not as many.
        """
        self._check_size(size)
        return self._writer.standing.tree.root(size)

    def inclusion(self, seq: int, size: int) -> list[bytes]:
        """Return the proof that event `seq` is among the first `size` events.

        Raises:
            LedgerError: the ledger has no such event, or not as many.
        """
        self._check_size(size)
        if not 1 <= seq <= size:
            raise LedgerError(f"there is no event {seq} among the first {size}")
        return self._writer.standing.tree.inclusion(seq - 1, size)

    def consistency(self, old: int, new: int) -> list[bytes]:
        """Return the proof that the first `old` events begin the first `new` ones.

        Raises:
            LedgerError: the ledger has not as many, or old is not 1 to new.
        """
        self._check_size(new)
        if not 1 <= old <= new:
            raise LedgerError(f"there is no proof from {old} to {new} events")
        return self._writer.standing.tree.consistency(old, new)

    def close(self) -> None:
        """Sign what is new, close the file and let another process write; twice is once."""
        with self._turn:
            if not self._open:
                return
            self._open = False
            try:
                if self._writer.problem is None:
                    self._writer.sign_tail()
            finally:
                self._writer.shut()
                self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append_alone(self, row: Row) -> int:
        """Write one event at once if nobody else writes and nothing must go with it, else 0."""
        if self._turn.locked():
            return 0
        with self._turn:  # an interrupt behind an acquire() would keep the turn for ever
            return self._writer.insert_lone(row)

    def _lead(self) -> None:
        """Write for all who wait now, tell them, and hand the lead to the first of the others.

        An interrupt may come at any call, here and in what follows: `_leave` ends what it left.
        """
        if self._together > 1:
            self._quorum.acquire(timeout=GATHER_S)
        with self._turn:
            with self._door:
                self._choose_group()
                self._together = len(self._group)
                self._quorum.acquire(blocking=False)
            self._writer.write(self._group)
        with self._door:
            self._hand_over()

    def _leave(self, waiting: Waiting) -> None:
        """Go without an answer, at an interrupt, and leave nobody waiting for one or the lead."""
        with self._door:
            if waiting in self._queue:
                self._queue.remove(waiting)
            if self._leader is waiting:
                self._hand_over()

    def _hand_over(self) -> None:
        """Wake the group and the next to lead; done again, it goes on where it was interrupted."""
        for waiting in self._group:
            if not waiting.done and waiting not in self._queue:
                self._writer.doubt()
                waiting.problem = LedgerError("the append was interrupted")
                waiting.done = True
            waiting.wake()
        self._group = []
        following = self._queue[0] if self._queue else None
        if following is not None:
            following.wake()
        self._leader = following

    def _choose_group(self) -> None:
        """Take the first lists of the queue, as many as go into a transaction."""
        events = size = 0
        while self._queue:
            events += len(self._queue[0].rows.bodies)
            size += self._queue[0].bytes
            if self._group and (events > MOST_GROUP_EVENTS or size > MOST_GROUP_BYTES):
                break
            self._group.append(self._queue[0])
            self._queue.popleft()

    def _check_size(self, size: int) -> None:
        if size > self.size:
            raise LedgerError(f"the ledger has {self.size} events, not {size}")


@contextmanager
def _locked(path: Path) -> Iterator[WriterLock]:
    """Take the writer's lock, and keep it unless what is done under it fails."""
    lock = WriterLock(path)
    kept = False
    try:
        yield lock
        kept = True
    finally:
        if not kept:
            lock.release()


def _make(path: Path, opened: Event, rig_key: SigningKey, now: str) -> None:
    said, public = opened.data, rig_key.public
    if not isinstance(said, LedgerOpened):
        raise LedgerError("event 1 of a ledger is ledger_opened")
    if (said.rig, said.rig_key) != (public.id, strict_base64.encode(public.raw)):
        raise LedgerError(f"ledger_opened names rig {said.rig}, and the key is {public.id}'s")
    row = encode(opened)
    head = link(genesis(said.ledger, public.raw), 1, row.leaf)
    note = Checkpoint(said.rig, said.ledger, 1, row.leaf, head, now)
    make_file(path, row, head, sign_note(note, rig_key))
