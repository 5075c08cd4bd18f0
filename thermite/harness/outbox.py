"""What a rig says to the outside: receipts, its newest checkpoint, its card.

A receipt is a pure function of the ledger, the kept envelope and the rig's key: `catch_up`
makes those of all events that it has not seen, and writes those whose file is missing or
differs, so that a kill between COMMIT and write loses nothing. No event records a receipt.
Source: ledger and signing, 3.10.
"""

import contextlib
import os
import secrets
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from thermite.command.envelope import read_envelope
from thermite.command.note import open_note, read_note
from thermite.command.public_key import PublicKey
from thermite.command.receipt import open_receipt, receipt_id, seal_receipt, seal_rig_card
from thermite.command.signing_key import SigningKey
from thermite.command.strict_base64 import encode as base64
from thermite.errors import CommandError, LedgerError
from thermite.harness.folder import RigFolder
from thermite.ledger.append import Ledger
from thermite.ledger.replay import Recorded, recorded
from thermite.schema.command import (
    After,
    CommandPayload,
    Inclusion,
    Outcome,
    Receipt,
    ReceiptCommand,
    RigCard,
)
from thermite.schema.event import AssignmentEnded, CommandAccepted, CommandRefused
from thermite.schema.ids import Sha256
from thermite.schema.offer import short

NO_CHECKPOINT: Final = "this command names no checkpoint"
"""The warning of a receipt whose command has no `after` (ledger and signing, 3.8)."""
NEWEST: Final = "checkpoint"
CARD: Final = "rig.json"
_SUFFIX: Final = ".receipt.json"
_MODE: Final = 0o644


@dataclass(frozen=True)
class About:
    """Which command a receipt answers; after: the checkpoint that its sender holds."""

    digest: Sha256
    id: str | None
    after: After | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a receipt says: seq and at are those of the deciding event, or None."""

    outcome: Outcome
    code: str | None = None
    message: str | None = None
    seq: int | None = None
    at: str | None = None
    assignment: str | None = None


class Outbox:
    """The folder `outbox/`; safe to call from several threads."""

    def __init__(self, folder: RigFolder, ledger: Ledger, rig_key: SigningKey) -> None:
        self._folder, self._ledger, self._key = folder, ledger, rig_key
        self._lock = threading.Lock()
        self._seq = 0
        self._card: bytes | None = None
        self._assigned: dict[str, About] = {}
        self._is_behind = False
        self._told = ""

    def start(self) -> None:
        """Remove what only a running process means, and write what is missing."""
        for stale in self._folder.outbox.glob(f"*.waiting{_SUFFIX}"):
            stale.unlink()
        for half in self._folder.outbox.glob(".half-*"):
            half.unlink()
        self.catch_up()

    def catch_up(self) -> None:
        """Write the receipts of all events since the last call, and the newest checkpoint.

        A disk that refuses keeps nobody from deciding: it is said, and tried again later.
        """
        with self._lock, self._said_when_refused():
            is_told = self._seq == self._ledger.size and self._told == self._ledger.newest_note()
            if is_told and not self._is_behind:
                return
            wrote = False
            for row in recorded(self._folder.ledger, after=self._seq):
                for about, answer in self._answers(row):
                    wrote |= self._write(self._name(about, answer.outcome), about, answer)
                self._seq = row.seq
            note = self._ledger.newest_note()
            wrote |= self._put(NEWEST, note.encode())
            if self._card is not None:
                wrote |= self._put(CARD, self._card)
            if wrote:
                self._sync()
            self._told = note

    def keep_up(self) -> None:
        """Write what the disk has refused before, and a checkpoint that no answer has carried.

        A long campaign answers nobody for hours: its checkpoints leave the rig all the same.
        """
        if self._is_behind or self._ledger.newest_note() != self._told:
            self.catch_up()

    def name_of(self, digest: str, outcome: Outcome) -> str:
        """Return the file name of a command's receipt."""
        return f"{digest[:12]}.{outcome}{_SUFFIX}"

    def touch(self, digest: str, outcome: Outcome = "accepted") -> str:
        """Answer a command that was decided like this before: its first receipt again."""
        name = self.name_of(digest, outcome)
        with contextlib.suppress(OSError):
            os.utime(self._folder.outbox / name)
        return name

    def wait(self, digest: Sha256, command_id: str, code: str, message: str) -> None:
        """Say why a command waits, once for each reason."""
        about = About(digest, command_id)
        answer = Answer("waiting", code=code, message=short(message))
        path = self._folder.outbox / self.name_of(digest, "waiting")
        with self._lock, self._said_when_refused():
            if not self._says(path, code):
                self._write(path.name, about, answer)

    def end_wait(self, digest: str) -> None:
        """Remove the word that a command waits: it is decided."""
        with self._said_when_refused():
            (self._folder.outbox / self.name_of(digest, "waiting")).unlink(missing_ok=True)

    def refusal(self, digest: str, code: str) -> Receipt | None:
        """Return the receipt by which a command was refused for this reason before, or None."""
        path = self._folder.outbox / self.name_of(digest, "refused")
        found = self._receipt(path)
        is_it = found is not None and (found.command.sha256, found.code) == (digest, code)
        return found if is_it else None

    def refuse_unrecorded(
        self, digest: Sha256, command_id: str | None, code: str, message: str
    ) -> None:
        """Answer a refusal that was too many for the ledger (Floods): no event stands for it."""
        answer = Answer("refused", code=code, message=short(message))
        with self._lock, self._said_when_refused():
            self._write(self.name_of(digest, "refused"), About(digest, command_id), answer)

    def write_card(self, card: RigCard) -> None:
        """Write `rig.json`, by which control gets to know this rig."""
        with self._lock, self._said_when_refused():
            self._card = seal_rig_card(card, self._key)
            self._put(CARD, self._card)
            self._sync()

    @contextlib.contextmanager
    def _said_when_refused(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            if not self._is_behind:
                said = f"the outbox can't be written to ({error.strerror}): it is tried again"
                sys.stderr.write(f"harness: {said}\n")
            self._is_behind = True
        else:
            self._is_behind = False

    def _answers(self, row: Recorded) -> Iterator[tuple[About, Answer]]:
        """Give what one event answers: a pure function of the event and the kept envelope."""
        event, data = row.event, row.event.data
        if isinstance(data, CommandAccepted):
            about = self._about(Sha256(data.sha256), data.id)
            if data.type == "assign_campaign" and event.assignment is not None:
                self._assigned[event.assignment] = about
            yield (
                about,
                Answer("accepted", seq=row.seq, at=event.at, assignment=event.assignment),
            )
        elif isinstance(data, CommandRefused) and data.digest is not None:
            about = self._about(Sha256(data.digest), data.id)
            yield (
                about,
                Answer("refused", code=data.code, message=data.message, seq=row.seq, at=event.at),
            )
        elif isinstance(data, AssignmentEnded) and event.assignment in self._assigned:
            about = self._assigned[event.assignment]
            yield (
                about,
                Answer(
                    "finished",
                    message=data.reason,
                    seq=row.seq,
                    at=event.at,
                    assignment=event.assignment,
                ),
            )

    def _about(self, digest: Sha256, command_id: str | None) -> About:
        """Return what a command's kept envelope says of checkpoints; refused ones are not kept."""
        try:
            raw = (self._folder.blobs / digest).read_bytes()
            payload = msgspec.json.decode(read_envelope(raw).payload, type=CommandPayload)
        except (OSError, CommandError, msgspec.DecodeError):
            return About(digest, command_id)
        warnings = () if payload.after is not None else (NO_CHECKPOINT,)
        return About(digest, command_id, payload.after, warnings)

    def _name(self, about: About, outcome: Outcome) -> str:
        return self.name_of(about.digest, outcome)

    def _write(self, name: str, about: About, answer: Answer) -> bool:
        opened = read_note(self._ledger.newest_note())
        note = self._note(answer.seq)
        size = read_note(note).size
        receipt = Receipt(
            v=1,
            rig=opened.rig,
            ledger=opened.ledger,
            receipt_id=receipt_id(about.digest, answer.outcome),
            command=ReceiptCommand(sha256=about.digest, id=about.id),
            outcome=answer.outcome,
            code=answer.code,
            message=answer.message,
            warnings=list(about.warnings),
            event_seq=answer.seq,
            assignment=answer.assignment,
            checkpoint=note,
            inclusion=None if answer.seq is None else self._inclusion(answer.seq, size),
            consistency=self._consistency(about.after, size),
            at=answer.at,
        )
        return self._put(name, seal_receipt(receipt, self._key))

    def _note(self, seq: int | None) -> str:
        note = None if seq is None else self._ledger.note_covering(seq)
        return note if note is not None else self._ledger.newest_note()

    def _inclusion(self, seq: int, size: int) -> list[str] | None:
        if seq > size:
            return None
        return _texts(self._ledger.inclusion(seq, size))

    def _consistency(self, after: After | None, size: int) -> Inclusion | None:
        if after is None or after.size > size:
            return None
        hashes = _texts(self._ledger.consistency(after.size, size))
        return Inclusion(from_=after.size, to=size, hashes=hashes)

    def _says(self, path: Path, code: str) -> bool:
        """Return whether a receipt of ours gives this reason already."""
        found = self._receipt(path)
        return found is not None and found.code == code

    def _receipt(self, path: Path) -> Receipt | None:
        """Return the receipt of ours in a file, or None when there is none."""
        try:
            return open_receipt(path.read_bytes(), self._key.public)
        except (OSError, CommandError):
            return None

    def _put(self, name: str, raw: bytes) -> bool:
        """Write a file unless it has these bytes already; return whether it was written."""
        path = self._folder.outbox / name
        with contextlib.suppress(OSError):
            if path.read_bytes() == raw:
                return False
        half = self._folder.outbox / f".half-{secrets.token_hex(6)}"
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _MODE)
        try:
            with os.fdopen(descriptor, "wb") as file:
                os.fchmod(descriptor, _MODE)
                file.write(raw)
            half.rename(path)
        except OSError:
            half.unlink(missing_ok=True)
            raise
        return True

    def _sync(self) -> None:
        descriptor = os.open(self._folder.outbox, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def witnessed(outbox: Path, rig: PublicKey) -> int:
    """Return the largest size of a checkpoint of this rig that lies in its outbox.

    What is not signed by this rig's key says nothing. Source: ledger and signing, 3.3, at open.
    """
    sizes = [0]
    if outbox.is_dir():
        sizes += [
            checkpoint_size(path, rig) for path in outbox.iterdir() if not path.name.startswith(".")
        ]
    return max(sizes)


def checkpoint_size(path: Path, rig: PublicKey) -> int:
    """Return the size that a file's checkpoint of this rig names; 0 when it holds none."""
    try:
        raw = path.read_bytes()
        note = raw.decode() if path.name == NEWEST else open_receipt(raw, rig).checkpoint
        return open_note(note or "", rig).size
    except (OSError, UnicodeDecodeError, CommandError, LedgerError):
        return 0


def _texts(hashes: Sequence[bytes]) -> list[str]:
    return [base64(one) for one in hashes]
