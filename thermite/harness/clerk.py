"""Carries a decision out: keep the envelope, commit, move the file, and say what was decided.

In this order, so that a kill in between is seen as `duplicate` at the next offer. Receipts
are made from the ledger by the outbox. Source: ledger and signing, 3.9, step 14, and 3.10.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple

from thermite.campaign.fold import LOCKING
from thermite.campaign.state import Seen
from thermite.command.envelope import digest, read_envelope
from thermite.command.keyring import Keyring
from thermite.command.payload import read_payload
from thermite.command.verify import Command
from thermite.errors import CommandError, InfrastructureError, LedgerError
from thermite.harness import clock
from thermite.harness.blobs import Half, forget, keep_blob, keep_halves, write_half
from thermite.harness.book import Book, Draft
from thermite.harness.card import rig_card
from thermite.harness.case import Case
from thermite.harness.decide import Decision, Duplicate, decide
from thermite.harness.inbox import Inbox
from thermite.harness.outbox import Outbox
from thermite.harness.refusals import Floodgate, remedy
from thermite.harness.trust import write_cache
from thermite.schema.command import COMMAND_TYPE, TrustedKey
from thermite.schema.event import CommandRefused, RigSelftest
from thermite.schema.ids import Sha256
from thermite.schema.offer import Decided, Wait, name_text, short
from thermite.schema.rig_settings import RigSettings

CHANGES_TRUST: Final = frozenset({"update_trust", "revoke_key"})
_MOST_REFUSED: Final = 256
"""Refusals that are kept in mind: four times those whose receipts are written together."""
_MOST_NAME: Final = 120  # characters of a foreign file name in an event


@dataclass(frozen=True)
class Owed:
    """A refused command that a trusted key signed: its sender gets a receipt."""

    digest: Sha256
    id: str | None


class _First(NamedTuple):
    """The first refusal of a command for one reason; seq: None when it was too many to record."""

    seq: int | None
    message: str


class Clerk:
    """Writes the ledger, the inbox and the outbox for the door; used by its one thread."""

    def __init__(
        self,
        book: Book,
        inbox: Inbox,
        outbox: Outbox,
        state: Path,
        settings: RigSettings,
        *,
        group: int | None,
    ) -> None:
        self.book, self.inbox, self.outbox = book, inbox, outbox
        self._state, self._settings, self._group = state, settings, group
        self._blobs = state / "blobs"
        self._gate = Floodgate()
        self._trust: list[TrustedKey] | None = None
        self._keyring = Keyring([])
        self._refused: dict[tuple[str, str], _First] = {}
        self._later: list[Callable[[], object]] | None = None
        self._halves: list[Half] = []
        self._carded: RigSelftest | None = None

    @contextmanager
    def together(self) -> Iterator[None]:
        """Commit what is decided inside as one transaction; files are moved after it.

        Raises:
            LedgerError: the ledger can't take it; every file stays.
        """
        later = self._later = []
        try:
            with self.book.together():
                yield
                self._keep_envelopes()
        finally:
            self._later = None
            forget(self._halves)
            self._halves.clear()
        for act in later:
            act()

    def _keep(self, command: Command) -> None:
        """Keep a command's envelope: at once, or with its group's before the commit."""
        if self._later is None:
            keep_blob(self._blobs, command.digest, command.raw)
        elif (half := write_half(self._blobs, command.digest, command.raw)) is not None:
            self._halves.append(half)

    def _keep_envelopes(self) -> None:
        try:
            keep_halves(self._blobs, self._halves)
        except OSError as error:
            raise LedgerError(f"the orders can't be kept: {error.strerror}") from error

    def _once_durable(self, act: Callable[[], object]) -> None:
        """Do something when what was appended so far is committed."""
        if self._later is None:
            act()
        else:
            self._later.append(act)

    def keyring(self) -> Keyring:
        """Return the keys that the ledger trusts now."""
        with self.book.lock:
            trust = self.book.state.trust
            # A change of trust is another list; its keys are looked at once.
            if trust is not self._trust:
                self._trust, self._keyring = trust, Keyring(trust)
            return self._keyring

    def judge(self, command: Command, now: datetime) -> Decision:
        """Return what follows from a command now.

        Raises:
            CommandError: it is refused, or `not_yet_valid`.
        """
        ledger = self.book.ledger
        with self.book.lock:
            return decide(command, self.book.state, now, size=ledger.size, root_at=ledger.root_at)

    def commit(
        self, case: Case, command: Command, drafts: Callable[[], tuple[Draft, ...]]
    ) -> Decided:
        """Accept a command: its events are one transaction, then its file is moved.

        Args:
            drafts: makes the events; called under the book's lock, when nothing has come
                between the last check and the append.

        Raises:
            CommandError: another command has come between.
            InfrastructureError: the disk refuses the envelope; nothing has happened.
            LedgerError: the ledger can't take it; the file stays.
        """
        try:
            self._keep(command)
        except OSError as error:
            raise InfrastructureError(f"the order can't be kept: {error.strerror}") from error
        with self.book.lock:
            again = self.judge(command, case.now)
            if isinstance(again, Duplicate):
                return self.duplicate(case, again.seen)
            self.book.append(*drafts())
        if command.payload.type in CHANGES_TRUST:
            self._once_durable(self.publish_trust)
        self._once_durable(partial(self._move, case, "done", command.digest))
        self._once_durable(partial(self.outbox.end_wait, command.digest))
        return Decided(
            n=case.n,
            outcome="accepted",
            code=None,
            message=None,
            receipt=self.outbox.name_of(command.digest, "accepted"),
        )

    def duplicate(self, case: Case, seen: Seen) -> Decided:
        """Answer a command that was accepted before with its first receipt."""
        self._once_durable(partial(self._move, case, "done", seen.digest))
        self._once_durable(partial(self.outbox.touch, seen.digest))
        return Decided(
            n=case.n,
            outcome="duplicate",
            code="duplicate",
            message=f"accepted before, as event {seen.seq}",
            receipt=self.outbox.name_of(seen.digest, "accepted"),
        )

    def refuse(self, case: Case, error: CommandError, owed: Owed | None) -> Decided:
        """Refuse a file: an event unless there were too many, a reason, a receipt if owed.

        A command that was refused for this reason before has its event and its receipt.

        Raises:
            LedgerError: the ledger can't take the event; the file stays.
        """
        message = short(str(error))
        first = None if owed is None or self._locks(error.code) else self._first(owed, error.code)
        is_known = first is not None
        if first is None:
            first = _First(self._record(case, error.code, message, owed), message)
            if owed is not None:
                self._remember(owed, error.code, first)
        elif owed is not None:
            self._once_durable(partial(self.outbox.touch, owed.digest, "refused"))
        seq, message = first
        reason = {
            "code": error.code,
            "message": message,
            "what to do": remedy(error.code, message),
            "sha256": case.sha256,
            "seq": seq,
        }
        self._once_durable(partial(self._set_aside, case, reason))
        if owed is not None:
            self._once_durable(partial(self.outbox.end_wait, owed.digest))
            if seq is None and not is_known:
                self.outbox.refuse_unrecorded(owed.digest, owed.id, error.code, message)
        receipt = None if owed is None else self.outbox.name_of(owed.digest, "refused")
        return Decided(
            n=case.n, outcome="refused", code=error.code, message=message, receipt=receipt
        )

    def wait(self, case: Case, command: Command, error: CommandError, until: datetime) -> Wait:
        """Put a command off: nothing is moved, and its sender is told why once."""
        self.outbox.wait(command.digest, command.payload.id, error.code, str(error))
        return Wait(n=case.n, code=error.code, until=clock.rfc3339(until))

    def owed(self, raw: bytes) -> Owed | None:
        """Return whose receipt a refused file's bytes ask for: a trusted key's owner's."""
        try:
            envelope = read_envelope(raw)
        except CommandError:
            return None
        is_command = envelope.payload_type == COMMAND_TYPE
        if not is_command or not self.keyring().find_signers(envelope):
            return None
        try:
            command_id = read_payload(envelope.payload).id
        except CommandError:
            command_id = None
        return Owed(digest(envelope.payload), command_id)

    def publish_trust(self) -> None:
        """Write the supervisor's cache of the trust, and the card, which names it, too."""
        with self.book.lock:
            write_cache(self._state, self.book.state, group=self._group)
        self._publish_card()

    def publish_selftest(self) -> None:
        """Write the card anew where it lacks the newest selftest: forecasts are made from it."""
        if self.book.state.selftest is not self._carded:
            self._publish_card()

    def _publish_card(self) -> None:
        with self.book.lock:
            self._carded = self.book.state.selftest
            note, at = self.book.ledger.newest_note(), clock.stamp()
            card = rig_card(self.book.state, self._settings, checkpoint=note, at=at)
        self.outbox.write_card(card)

    def tell_suppressed(self, *, ending: bool = False) -> None:
        """Record refusals that were held back, once their minute is over."""
        event = self._gate.told(time.monotonic(), ending=ending)
        if event is not None:
            self.book.append(Draft(event))

    def _record(self, case: Case, code: str, message: str, owed: Owed | None) -> int | None:
        """Append the refusal's event and return its seq, or None when there are too many.

        One that locks the rig always counts: a trusted key signed it.
        """
        if not (owed is not None and self._locks(code)) and not self._gate.admit(
            time.monotonic(), clock.stamp()
        ):
            return None
        event = CommandRefused(
            sha256=case.sha256,
            size=case.size,
            name=name_text(case.which.name)[:_MOST_NAME],
            code=code,
            digest=None if owed is None else owed.digest,
            id=None if owed is None else owed.id,
            message=None if owed is None else message,
        )
        return self.book.append(Draft(event))[0]

    def _locks(self, code: str) -> bool:
        """Return whether a refusal of this kind locks the rig, which is not locked yet."""
        return code in LOCKING and not self.book.state.ledger_locked

    def _first(self, owed: Owed, code: str) -> "_First | None":
        """Return what was said when a command was refused for this reason before, or None."""
        found = self._refused.get((owed.digest, code))
        if found is not None:
            return found
        receipt = self.outbox.refusal(owed.digest, code)
        return None if receipt is None else _First(receipt.event_seq, receipt.message or "")

    def _remember(self, owed: Owed, code: str, first: "_First") -> None:
        """Keep a refusal in mind until its receipt lies there: its copy may be next."""
        self._refused[owed.digest, code] = first
        if len(self._refused) > _MOST_REFUSED:
            del self._refused[next(iter(self._refused))]

    def _set_aside(self, case: Case, reason: Mapping[str, object]) -> None:
        target = self._move(case, "refused", case.sha256 or "")
        self.inbox.write_reason(target, reason)

    def _move(self, case: Case, shelf: Literal["done", "refused"], digest_of: str) -> str:
        stamp = case.now.strftime("%Y%m%dT%H%M%S.%fZ")
        return self.inbox.move(case.which, shelf, stamp, digest_of)
