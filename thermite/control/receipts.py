"""A rig's answers: found in its outbox, verified, kept; its checkpoints held side by side.

A checkpoint that control holds is a witness outside the rig: a ledger that was cut off or
rewritten since no longer agrees with it. Source: ledger and signing, 3.4 and 3.10.
"""

import os
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from thermite.command import strict_base64
from thermite.command.instant import read_instant
from thermite.command.note import MOST_NOTE_BYTES, Checkpoint, open_note, read_note
from thermite.command.receipt import open_receipt, receipt_id
from thermite.control.home import ControlHome
from thermite.control.private_file import replace
from thermite.control.rigs import KnownRig, RigChangedError
from thermite.errors import CommandError, LedgerError, NotFoundError, UnreachableError, UsageError
from thermite.ledger.merkle import is_consistent
from thermite.schema.command import MAX_COMMAND_BYTES, After, Receipt
from thermite.schema.ids import Sha256
from thermite.schema.strict import Strict

NEWEST: Final = "newest.note"
"""In the folder of a rig's receipts: the newest checkpoint that control holds."""
SENT: Final = ".sent.json"
MOST_FILES: Final = 100_000
"""Most files of an outbox that are looked at: some years of orders."""

_RECEIPT: Final = re.compile(r"[0-9a-f]{12}\.[a-z]+\.receipt\.json")
_PROVEN: Final = ("accepted", "finished")
"""Outcomes whose receipts prove that the ledger goes on from what the order named."""
_DECIDED: Final = ("finished", "refused", "accepted")


class SentOrder(Strict):
    """An order that control has put into an inbox.

    at: RFC 3339, UTC; after: the checkpoint that control held and the order names.
    """

    digest: str
    id: str
    type: str
    at: str
    file: str
    after: After | None = None


class KeptReceipt(Strict):
    """A receipt and the name of its file; problem: why it can't be believed, or None."""

    name: str
    receipt: Receipt | None
    problem: str | None = None


def note_sent(home: ControlHome, rig: KnownRig, order: SentOrder) -> None:
    """Remember an order, so that one without a receipt is noticed."""
    path = folder_of(home, rig) / f"{order.digest[:12]}{SENT}"
    replace(path, msgspec.json.encode(order))


def sent_orders(home: ControlHome, rig: KnownRig) -> list[SentOrder]:
    """Return the orders that control has sent to a rig, the oldest first.

    Raises:
        UsageError: one of these notes was changed by hand.
    """
    found = [_read_sent(path) for path in folder_of(home, rig).glob(f"*{SENT}")]
    return sorted(found, key=lambda order: (order.at, order.digest))


def unanswered(
    home: ControlHome,
    rig: KnownRig,
    found: Iterable[KeptReceipt],
    *,
    now: datetime,
    after_min: float,
) -> list[SentOrder]:
    """Return the orders that were sent more than after_min minutes ago and have no receipt.

    A rig can't see a file that somebody took out of its inbox; control can.
    """
    answered = {item.receipt.command.sha256 for item in found if item.receipt is not None}
    late = now - timedelta(minutes=after_min)
    return [
        order
        for order in sent_orders(home, rig)
        if order.digest not in answered and read_instant(order.at) <= late
    ]


def collect(home: ControlHome, rig: KnownRig) -> list[KeptReceipt]:
    """Read the rig's outbox, verify and keep every receipt, and keep the newest checkpoint.

    Returns:
        All receipts of this rig, kept ones too, by name; one that can't be believed has a
        problem and is not kept.

    Raises:
        UnreachableError: the outbox is not there.
        LedgerError: two checkpoints of the rig contradict each other: its ledger was
            rolled back or forked.
    """
    kept = folder_of(home, rig)
    before = {item.name: (item, raw) for item, raw in _read_all(kept, rig)}
    found = {name: item for name, (item, _) in before.items()}
    sent = {order.digest: order for order in sent_orders(home, rig)}
    for told, raw in _read_all(rig.outbox, rig):
        item = _continued(told, sent)
        found[item.name] = item
        if item.receipt is not None and before.get(item.name) != (item, raw):
            replace(kept / item.name, raw)
    notes = [item.receipt.checkpoint for item in found.values() if item.receipt is not None]
    keep_checkpoints(home, rig, (note for note in notes if note is not None))
    return [found[name] for name in sorted(found)]


def read_receipt(path: Path, rig: KnownRig) -> KeptReceipt:
    """Return one receipt file of the rig, verified.

    Raises:
        NotFoundError: there is no such file.
    """
    found = _read(path, rig)
    if found is None:
        raise NotFoundError(f"there is no receipt {path}")
    return found[0]


def receipt_for(rig: KnownRig, digest: Sha256) -> Receipt | None:
    """Return the rig's answer to one order: decided before waiting, or None so far.

    Raises:
        UnreachableError: the outbox is not there.
        RigChangedError: there is an answer, and the rig's key has not signed it.
    """
    if not rig.outbox.is_dir():
        raise UnreachableError(f"{rig.outbox} is not there: is the rig's folder mounted?")
    for outcome in (*_DECIDED, "waiting"):
        path = rig.outbox / f"{digest[:12]}.{outcome}.receipt.json"
        found = _read(path, rig)
        if found is None:
            continue
        item, _ = found
        if item.receipt is None:
            raise RigChangedError(f"{path}: {item.problem}")
        if item.receipt.command.sha256 == digest:
            return item.receipt
    return None


def newest_checkpoint(home: ControlHome, rig: KnownRig) -> Checkpoint | None:
    """Return the newest checkpoint of the rig's ledger that control holds."""
    try:
        text = (folder_of(home, rig) / NEWEST).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    held = open_note(text, rig.public)
    return held if held.ledger == rig.ledger else None


def after(home: ControlHome, rig: KnownRig) -> After | None:
    """Return what an order says of the newest checkpoint that control holds."""
    held = newest_checkpoint(home, rig)
    return After(size=held.size, root=strict_base64.encode(held.root)) if held else None


def keep_checkpoints(home: ControlHome, rig: KnownRig, notes: Iterable[str]) -> Checkpoint | None:
    """Keep the newest of these notes and of the one that is held; return it.

    Raises:
        LedgerError: a note is not the rig's, or two of one size have different roots; both
            are then kept as evidence.
    """
    held = newest_checkpoint(home, rig)
    for note in notes:
        made = open_note(note, rig.public)
        if made.ledger != rig.ledger:
            continue
        if held is not None and made.size == held.size and made.root != held.root:
            _keep_fork(home, rig, note, made)
        if held is None or made.size > held.size:
            replace(folder_of(home, rig) / NEWEST, note.encode())
            held = made
    return held


def folder_of(home: ControlHome, rig: KnownRig) -> Path:
    """Return the folder of a rig's receipts, made if need be."""
    home.make()
    folder = home.receipts / rig.rig
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _read_sent(path: Path) -> SentOrder:
    try:
        return msgspec.json.decode(path.read_bytes(), type=SentOrder)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path} is not as control writes it ({error}): remove it") from None


def _keep_fork(home: ControlHome, rig: KnownRig, note: str, made: Checkpoint) -> None:
    folder = folder_of(home, rig)
    held = (folder / NEWEST).read_bytes()
    replace(folder / f"fork-{made.size}-held.note", held)
    replace(folder / f"fork-{made.size}-other.note", note.encode())
    raise LedgerError(
        f"rig {rig.rig} has signed two different ledgers of {made.size} events: one was rewritten."
        f" Both notes are kept in {folder} as proof: audit the rig's ledger with --against {folder}"
    )


def _read_all(folder: Path, rig: KnownRig) -> list[tuple[KeptReceipt, bytes]]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if _RECEIPT.fullmatch(entry.name))
    except OSError as error:
        raise UnreachableError(f"{folder} can't be listed: {error.strerror}") from None
    return [item for name in names[-MOST_FILES:] if (item := _read(folder / name, rig))]


def _read(path: Path, rig: KnownRig) -> tuple[KeptReceipt, bytes] | None:
    """Return one receipt, verified, and its very bytes; None when there is none."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_COMMAND_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        return KeptReceipt(name=path.name, receipt=None, problem=str(error.strerror)), b""
    try:
        receipt = open_receipt(raw, rig.public)
        _check(receipt, path.name)
        if receipt.checkpoint is not None:
            _check_note(receipt.checkpoint, rig)
    except (CommandError, LedgerError) as error:
        return KeptReceipt(name=path.name, receipt=None, problem=str(error)), raw
    return KeptReceipt(name=path.name, receipt=receipt), raw


def _continued(item: KeptReceipt, sent: Mapping[str, SentOrder]) -> KeptReceipt:
    """Return a receipt, or why its checkpoint does not go on from the one its order named."""
    receipt = item.receipt
    order = sent.get(receipt.command.sha256) if receipt is not None else None
    if receipt is None or order is None or order.after is None or receipt.checkpoint is None:
        return item
    made, held, proof = read_note(receipt.checkpoint), order.after, receipt.consistency
    if made.size < held.size or (proof is None and receipt.outcome not in _PROVEN):
        return item  # a rig keeps no refused order, so it can't prove what that one named
    try:
        hashes = [strict_base64.decode(hashed) for hashed in proof.hashes] if proof else []
        root = strict_base64.decode(held.root)
    except ValueError:
        hashes, root = [], b""
    if is_consistent(held.size, root, made.size, made.root, hashes):
        return item
    problem = (
        f"its checkpoint of {made.size} events is not shown to go on from the one of {held.size}"
        " events that the order named: the ledger may have been rewritten; audit it with --against"
    )
    return KeptReceipt(name=item.name, receipt=None, problem=problem)


def _check(receipt: Receipt, name: str) -> None:
    digest = Sha256(receipt.command.sha256)
    if receipt.receipt_id != receipt_id(digest, receipt.outcome):
        raise CommandError("malformed_payload", "its receipt_id is not that of its command")
    if name != f"{digest[:12]}.{receipt.outcome}.receipt.json":
        raise CommandError("malformed_payload", f"it answers {digest}, and its name says otherwise")


def _check_note(note: str, rig: KnownRig) -> None:
    if len(note.encode()) > MOST_NOTE_BYTES:
        raise LedgerError("its checkpoint is longer than a checkpoint is")
    open_note(note, rig.public)
