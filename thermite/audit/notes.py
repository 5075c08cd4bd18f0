"""The signed checkpoints in the file: each against its signature and the events below it.

Source: ledger and signing, 3.4 (notes, when they are made, findings).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from thermite.audit.findings import Findings, shown
from thermite.command import strict_base64
from thermite.command.instant import read_instant
from thermite.command.note import MOST_NOTE_BYTES, Checkpoint, open_note, read_note
from thermite.command.public_key import PublicKey
from thermite.errors import LedgerError
from thermite.ledger.checkpoint import MOST_BETWEEN, MOST_SECONDS
from thermite.ledger.merkle import Tree
from thermite.schema.audit import Finding, FindingCode

MOST_BAD: Final = 10_000
"""Checkpoints that do not hold, after which no more are read: a second's work, and a hundred
times what is listed."""


@dataclass(frozen=True)
class Ground:
    """What checkpoints are compared with: the ledger's name and key, its events' hashes.

    name: first line of its notes, or None when event 1 can't be read; heads: the stored
    chain hash at each size that a checkpoint might name; whole: all events could be read.
    """

    name: str | None
    keys: tuple[PublicKey, ...]
    tree: Tree
    heads: Mapping[int, bytes]
    whole: bool


class NotesCheck:
    """Walks over the checkpoints by size; keeps the valid ones."""

    def __init__(self, ground: Ground, findings: Findings, *, most_bad: int = MOST_BAD) -> None:
        self.total = 0
        self._most_bad, self._is_whole = most_bad, True
        self.valid: dict[int, tuple[Checkpoint, str]] = {}
        self._newest = 0
        self._ground, self._findings = ground, findings

    def take(self, size: int, raw: object) -> bool:
        """Check the next checkpoint; return whether another one should be read."""
        self.total += 1
        found = self._read(size, raw)
        if found is not None and self._fits(found[0]):
            if size - self._newest > MOST_BETWEEN:
                self._add_gap(self._newest, size)
            self.valid[size] = found
            self._newest = size  # they come by size
        return self.total - len(self.valid) < self._most_bad or self._stopped_at(size)

    def _stopped_at(self, size: int) -> bool:
        self._is_whole = False
        self._add(
            "checkpoints_unread",
            size,
            None,
            None,
            f"{self._most_bad} checkpoints up to event {size} do not hold, and no later one was"
            " read",
        )
        return False

    def finish(self, must_be_signed: int, last_at: str | None) -> None:
        """Say how much no checkpoint covers, and whether that can be.

        Args:
            must_be_signed: the last event whose transaction must have carried a checkpoint.
            last_at: the last event's time.
        """
        newest = self._newest
        events = self._ground.tree.size
        if newest >= events or not self._ground.whole or not self._is_whole:
            return
        if events - newest > MOST_BETWEEN:
            self._add_gap(newest, events)
        self._add(
            "unsigned_tail",
            newest,
            None,
            f"{events - newest} events",
            f"the {events - newest} events after event {newest} are signed by no checkpoint yet",
            severity="warning",
        )
        why = self._stale(newest, must_be_signed, last_at)
        if why is not None:
            self._add("stale_head", newest, None, None, why)

    def _stale(self, newest: int, must_be_signed: int, last_at: str | None) -> str | None:
        if must_be_signed > newest:
            return (
                f"event {must_be_signed} is of a kind that is signed in its own transaction, and"
                f" the newest valid checkpoint is at event {newest}: {self._later()}"
            )
        if newest == 0 or last_at is None:
            return "no checkpoint is valid" if newest == 0 else None
        try:
            waited = read_instant(last_at) - read_instant(self.valid[newest][0].time)
        except ValueError:
            return None
        # Twice: an event's time is taken a moment before the ledger looks at the clock.
        if waited.total_seconds() > 2 * MOST_SECONDS:
            return (
                f"the last event came {waited.total_seconds():.0f} s after the newest valid"
                f" checkpoint, and {MOST_SECONDS} s is the rule: {self._later()}"
            )
        return None

    def _later(self) -> str:
        """What became of the checkpoints after the newest valid one."""
        bad = self.total - len(self.valid)
        return f"{bad} later ones do not hold" if bad else "later ones were removed"

    def _read(self, size: int, raw: object) -> tuple[Checkpoint, str] | None:
        try:
            text = raw.decode() if isinstance(raw, bytes) and len(raw) <= MOST_NOTE_BYTES else ""
            said = read_note(text)
        except (UnicodeDecodeError, LedgerError) as error:
            why = f"the checkpoint at event {size} is no signed note: {error}"
            self._add("checkpoint_unreadable", size, None, shown(raw), why)
            return None
        if said.size != size:
            why = f"the checkpoint stored for event {size} speaks of event {said.size}"
            self._add("checkpoint_unreadable", size, str(size), str(said.size), why)
            return None
        if self._ground.name is None:
            return None  # nobody knows whose key to try: said once, of event 1
        if said.name != self._ground.name:
            why = f"the checkpoint at event {size} is another ledger's"
            self._add("checkpoint_signature", size, self._ground.name, said.name, why)
            return None
        if not is_signed(text, self._ground.keys):
            why = f"the checkpoint at event {size} is not signed by the rig's key: it was changed"
            self._add("checkpoint_signature", size, None, None, why)
            return None
        return said, text

    def _fits(self, said: Checkpoint) -> bool:
        """Return whether a signed checkpoint's root and head are the events'."""
        size, ground = said.size, self._ground
        if size > ground.tree.size:
            if ground.whole:
                why = f"a checkpoint names event {size}, and the ledger ends at {ground.tree.size}"
                got = str(ground.tree.size)
                self._add("shorter_than_checkpoint", size, str(size), got, why)
            return False
        root, head = ground.tree.root(size), ground.heads.get(size, b"")
        if said.root != root:
            why = f"events 1 to {size} are not those that the checkpoint signs"
            self._add("checkpoint_root", size, _text(said.root), _text(root), why)
        if said.head != head:
            why = f"the hash at event {size} is not the one that the checkpoint signs"
            self._add("checkpoint_head", size, _text(said.head), _text(head), why)
        return said.root == root and said.head == head

    def _add_gap(self, before: int, after: int) -> None:
        why = (
            f"no valid checkpoint lies between events {before} and {after}, and one is made at"
            f" least every {MOST_BETWEEN} events: some were removed or changed"
        )
        self._add("checkpoint_gap", after, str(MOST_BETWEEN), str(after - before), why)

    def _add(
        self,
        code: FindingCode,
        size: int,
        expected: str | None,
        got: str | None,
        explain: str,
        *,
        severity: str = "finding",
    ) -> None:
        self._findings.add(
            Finding(
                code=code,
                severity="warning" if severity == "warning" else "finding",
                size=size,
                expected=expected,
                got=got,
                explain=explain,
            )
        )


def is_signed(text: str, keys: Iterable[PublicKey]) -> bool:
    """Return whether one of the keys signed a note."""
    for key in keys:
        try:
            open_note(text, key)
        except LedgerError:
            continue
        return True
    return False


def _text(raw: bytes) -> str:
    return strict_base64.encode(raw)
