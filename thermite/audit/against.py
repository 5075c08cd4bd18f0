"""Checkpoints kept outside the ledger: the only evidence that its owner can't rewrite.

A checkpoint comes as its text, in a receipt or rig card (both DSSE envelopes), in a
promotion file, or as one of many such files in a folder: the rig's outbox, or all receipts that
control keeps, where each rig has a folder of its own, named by its id.

Source: ledger and signing, 2.6, 3.4 (witnessing) and 3.7 (`--against`).
"""

import contextlib
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from thermite.audit.findings import Findings
from thermite.audit.notes import Ground, is_signed
from thermite.command import strict_base64
from thermite.command.note import MOST_NOTE_BYTES, Checkpoint, read_note
from thermite.errors import LedgerError, UsageError
from thermite.schema.audit import Finding, FindingCode
from thermite.schema.ids import is_hex32
from thermite.schema.strict_json import NotStrictJson, read

MOST_FILE_BYTES: Final = 64 << 20
"""Largest promotion file (ledger and signing, 3.14)."""
MOST_FILES: Final = 100_000
"""Most files of one folder and of the rigs' folders in it: a rig's outbox is far smaller."""
_MOST_LEVELS: Final = 32
_NOTE_START: Final = b"thermite/"


@dataclass(frozen=True)
class Outside:
    """A checkpoint from outside, believed by nobody yet.

    place: the file it was in; rig: the rig whose folder among control's receipts that lay in.
    """

    place: str
    text: str
    said: Checkpoint
    rig: str | None = None


def read_outside(paths: Iterable[Path], *, most: int = MOST_FILES) -> list[Outside]:
    """Return the checkpoints of files and folders; in a folder, other files are passed over.

    Raises:
        FileNotFoundError: there is no such file.
        UsageError: a named file or folder holds no checkpoint.
    """
    found: list[Outside] = []
    for path in paths:
        here = list(_in_folder(path, most) if path.is_dir() else _in_file(path))
        if not here:
            raise UsageError(
                f"{path} holds no checkpoint: give a checkpoint, a receipt, a promotion file or a"
                " folder of them"
            )
        found += here
    return found


class OutsideCheck:
    """Compares checkpoints from outside with the ledger; `sizes` are those that fit."""

    def __init__(self, ground: Ground, inside: dict[int, str], findings: Findings) -> None:
        self.sizes: list[int] = []
        self._ground, self._inside, self._findings = ground, inside, findings
        self._seen: dict[int, tuple[bytes, Outside]] = {}

    def take(self, outside: Sequence[Outside]) -> None:
        """Compare all of them, smallest first, and say when none could be used."""
        outside = [one for one in outside if one.rig in {None, self._rig()}]
        usable: list[Outside] = []
        others: list[Outside] = []
        for one in outside:
            (usable if self._is_ours(one) else others).append(one)
        for one in sorted(usable, key=lambda one: one.said.size):
            self._compare(one)
        for one in others:
            self._add_unusable(one, alone=not usable)
        if not outside:
            self._add(
                Finding(
                    code="no_external_checkpoint",
                    severity="warning",
                    expected=None,
                    got=None,
                    explain="no checkpoint from outside was given: whoever holds the rig's key"
                    f" could have rewritten all {self._ground.tree.size} events of this ledger, and"
                    " anybody could have put an older copy in its place; give receipts with"
                    " --against",
                )
            )

    def _rig(self) -> str | None:
        return None if self._ground.name is None else self._ground.name.split("/")[1]

    def _is_ours(self, one: Outside) -> bool:
        return one.said.name == self._ground.name and is_signed(one.text, self._ground.keys)

    def _compare(self, one: Outside) -> None:
        said, tree = one.said, self._ground.tree
        before = self._seen.setdefault(said.size, (said.root, one))
        if before[0] != said.root:
            self._add_fork(said.size, before[1].text, one)
        if said.size > tree.size:
            why = f"{one.place} names event {said.size}, and the ledger ends at event {tree.size}"
            self._mismatch(
                "shorter_than_checkpoint", said.size, str(said.size), str(tree.size), why
            )
            return
        root, head = tree.root(said.size), self._ground.heads.get(said.size, b"")
        if (said.root, said.head) == (root, head):
            self.sizes.append(said.size)
            return
        if said.size in self._inside and read_note(self._inside[said.size]).root != said.root:
            self._add_fork(said.size, self._inside[said.size], one)
        why = f"events 1 to {said.size} are not those that the checkpoint in {one.place} signs"
        expected, got = (
            (_text(said.root), _text(root))
            if said.root != root
            else (_text(said.head), _text(head))
        )
        self._mismatch("external_mismatch", said.size, expected, got, why)

    def _add_fork(self, size: int, first: str, one: Outside) -> None:
        why = (
            f"the rig signed two different ledgers of {size} events (the second in {one.place}):"
            " these two notes prove it"
        )
        self._mismatch("fork", size, first, one.text, why)

    def _add_unusable(self, one: Outside, *, alone: bool) -> None:
        """A checkpoint of another ledger or key; when there is no other, nothing was shown."""
        got = one.said.name
        why = f"the checkpoint in {one.place} is not this ledger's or not signed by its rig's key"
        if alone:
            self._mismatch("external_mismatch", one.said.size, self._ground.name, got, why)
            return
        self._add(
            Finding(
                code="external_unusable",
                severity="warning",
                size=one.said.size,
                expected=self._ground.name,
                got=got,
                explain=why,
            )
        )

    def _mismatch(
        self, code: FindingCode, size: int, expected: str | None, got: str, explain: str
    ) -> None:
        self._add(
            Finding(
                code=code,
                severity="finding",
                size=size,
                expected=expected,
                got=got,
                explain=explain,
            )
        )

    def _add(self, finding: Finding) -> None:
        self._findings.add(finding)


def _in_folder(folder: Path, most: int) -> Iterator[Outside]:
    for path, rig in _files_in(folder, most):
        yield from _in_file(path, rig)


def _files_in(folder: Path, most: int) -> list[tuple[Path, str | None]]:
    """Return the files of a folder, and of the rigs' folders in it, each with its rig.

    Raises:
        UsageError: there are more entries than `most` in all of them, or one can't be read.
    """
    found: list[tuple[Path, str | None]] = []
    waiting: list[tuple[Path, str | None]] = [(folder, None)]
    left = most
    try:
        while waiting:
            here, rig = waiting.pop()
            entries = sorted(islice(here.iterdir(), left + 1))
            left -= len(entries)
            if left < 0:
                raise UsageError(f"{folder} holds more than {most} files: name fewer")
            found += [(path, rig) for path in entries if path.is_file()]
            if rig is None:
                rigs = [path for path in entries if is_hex32(path.name) and path.is_dir()]
                waiting += [(path, path.name) for path in reversed(rigs)]
    except OSError as error:
        raise UsageError(f"{folder} can't be read: {error.strerror}") from None
    return found


def _in_file(path: Path, rig: str | None = None) -> Iterator[Outside]:
    text = _note_text(_read(path))
    if text is not None:
        with contextlib.suppress(LedgerError):
            yield Outside(str(path), text, read_note(text), rig)


def _read(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{path} is not a plain file")
        with path.open("rb") as file:
            return file.read(MOST_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"there is no file {path}") from None
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None


def _note_text(raw: bytes) -> str | None:
    """Return the text of the checkpoint that a file holds, or None."""
    if raw.startswith(_NOTE_START):
        return raw.decode("utf-8", "replace") if len(raw) <= MOST_NOTE_BYTES else None
    whole = _json(raw)
    if isinstance(whole, dict) and isinstance(payload := whole.get("payload"), str):
        try:
            whole = _json(strict_base64.decode(payload))
        except ValueError:
            return None
    text = whole.get("checkpoint") if isinstance(whole, dict) else None
    return text if isinstance(text, str) else None


def _json(raw: bytes) -> object:
    try:
        return read(raw, most_bytes=MOST_FILE_BYTES, most_levels=_MOST_LEVELS)
    except NotStrictJson:
        return None


def _text(raw: bytes) -> str:
    return strict_base64.encode(raw)
