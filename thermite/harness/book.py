"""The ledger and the state that it means, under one lock.

`append` takes payloads, gives them their envelopes, asks the state machine about each,
commits them as one transaction and folds them. A reader that holds the lock sees only what
is committed. When an append fails the book is closed for good: the state may be ahead of
the file, and only a replay from the file is the truth.
"""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from thermite.campaign.fold import fold
from thermite.campaign.state import State
from thermite.campaign.table import problem
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError, LedgerUnavailableError
from thermite.harness import clock
from thermite.ledger.append import Ledger
from thermite.ledger.replay import recorded
from thermite.schema.event import ENVELOPES, TAG_OF, Event
from thermite.schema.strict import Strict


def open_ledger(path: Path, key: SigningKey, *, witnessed: int) -> Ledger:
    """Open a rig's ledger to write to it.

    Args:
        witnessed: how many events receipts name.

    Raises:
        LedgerError: it must not be written to; LedgerUnavailableError: its disk refuses already.
    """
    with _refusing(path):
        return Ledger.open(path, key, now=clock.stamp, witnessed=witnessed)


def make_ledger(path: Path, opening: Event, key: SigningKey) -> Ledger:
    """Make a rig's ledger with its first event.

    Raises:
        LedgerError: there is one, or it can't be made; LedgerUnavailableError: it is made, and its
            disk refuses the first writes to it.
    """
    with _refusing(path):
        return Ledger.create(path, opening, key, now=clock.stamp)


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Say in words that a disk refuses what SQLite writes before a ledger is there to write to."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "no code")
        raise LedgerUnavailableError(
            f"ledger unavailable: it can't be opened, {error} ({name}): look after the disk in"
            f" {path.parent}"
        ) from None


@dataclass(frozen=True)
class Draft:
    """A payload and whom it concerns; cause and command are filled in when None."""

    data: Strict
    assignment: str | None = None
    lane: int | None = None
    actor: str = "harness"
    cause: str | None = None
    command: str | None = None


class Book:
    """The one writer of events. Safe to call from several threads."""

    def __init__(self, ledger: Ledger, path: Path) -> None:
        self.ledger = ledger
        self.lock = threading.RLock()
        self.state = State()
        self.changed = threading.Condition(self.lock)
        self._closed = False
        self._group: list[Event] | None = None
        for row in recorded(path):
            fold(self.state, row.seq, row.event)

    def append(self, *drafts: Draft) -> list[int]:
        """Commit drafts as one transaction and return their seqs.

        Raises:
            LedgerError: the ledger can't take them; nothing of them is in it, and this book
                takes no more.
        """
        with self.lock:
            if self._closed:
                raise LedgerError("the ledger is unavailable since an append failed")
            try:
                events = self._fold(drafts)
                if self._group is None:
                    return self._commit(events)
            except BaseException:  # the state may be ahead of the file, whatever struck
                self._closed = True
                raise
            self._group += events
            return [*range(self.state.seq - len(events) + 1, self.state.seq + 1)]

    @contextmanager
    def together(self) -> Iterator[None]:
        """Commit all that this thread appends inside as one transaction, at its end.

        Nothing of it is durable before, and nobody else sees it: the lock is held. After an
        error inside, nothing of it is in the ledger; if there was something, the book is closed.

        Raises:
            LedgerError: as `append`, at the end.
        """
        with self.lock:
            if self._group is not None:
                raise RuntimeError("one group at a time")
            group = self._group = []
            try:
                yield
                self._group = None
                if group:
                    self._commit(group)
            except BaseException:
                self._closed = self._closed or bool(group)
                raise
            finally:
                self._group = None

    def _commit(self, events: list[Event]) -> list[int]:
        seqs = self.ledger.append(events)
        self.changed.notify_all()
        return seqs

    def close(self) -> None:
        """Take no more events, and close the ledger with a last checkpoint."""
        with self.lock:
            self._closed = True
            self.ledger.close()

    def _fold(self, drafts: Sequence[Draft]) -> list[Event]:
        events: list[Event] = []
        for draft in drafts:
            event = self._envelope(draft)
            why = problem(self.state, event)
            if why is not None:
                raise RuntimeError(f"{TAG_OF[type(draft.data)]} can't follow here: {why}")
            fold(self.state, self.state.seq + 1, event)
            events.append(event)
        return events

    def _envelope(self, draft: Draft) -> Event:
        assignment = self.state.assignments.get(draft.assignment or "")
        before = assignment.last_event if assignment is not None else None
        return ENVELOPES[TAG_OF[type(draft.data)]](
            id=clock.event_id(),
            assignment=draft.assignment,
            lane=draft.lane,
            actor=draft.actor,
            at=clock.stamp(),
            boot=clock.boot_id(),
            mono_ns=clock.mono_ns(),
            cause=draft.cause or before,
            command=draft.command or (assignment.command if assignment is not None else None),
            data=draft.data,
        )
