"""A rig's answers: found in its outbox, verified, kept; its checkpoints held side by side.

A checkpoint that control holds is a witness outside the rig: a ledger that was cut off or
rewritten since no longer agrees with it. Source: ledger and signing, 3.4 and 3.10.
"""

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from thermite.command import strict_base64
from thermite.command.instant import read_instant
from thermite.command.note import MOST_NOTE_BYTES, Checkpoint, open_note, read_note
from thermite.command.receipt import open_receipt, receipt_id
from thermite.control.foreign_file import read_foreign
from thermite.control.home import ControlHome
from thermite.control.private_file import replace
from thermite.control.rigs import KnownRig, RigChangedError
from thermite.errors import CommandError, LedgerError, NotFoundError, UnreachableError, UsageError
from thermite.ledger.merkle import is_consistent
from thermite.schema.command import MAX_COMMAND_BYTES, After, Receipt
from thermite.schema.ids import Sha256
from thermite.schema.strict import Strict
from thermite.schema.strict_json import read

NEWEST: Final = "newest.note"
"""In the folder of a rig's receipts: the newest checkpoint that control holds."""
SENT: Final = ".sent.json"
MOST_FILES: Final = 100_000
"""Most files of an outbox that are looked at: some years of orders."""
MOST_OF_ALL: Final = 1 << 30
"""Most bytes of the receipts of one folder: three times what so many honest ones have."""

_MOST_SENT: Final = 1 << 16
"""Longest note of an order: it has some 300 bytes."""
_RECEIPT: Final = re.compile(r"[0-9a-f]{12}\.[a-z]+\.receipt\.json")
_PROVEN: Final = ("accepted", "finished")
"""Outcomes whose receipts prove that the ledger goes on from what the order named."""
_DECIDED: Final = ("finished", "refused", "accepted")
_LOST: Final = ("ledger_rolled_back", "ledger_forked")
"""Refusals of an order whose checkpoint the rig's ledger does not go on from."""


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


def lost(home: ControlHome, rig: KnownRig, found: Iterable[KeptReceipt]) -> After | None:
    """Return the checkpoint that control holds where the rig has said that it lacks it.

    Each order that names it is refused, until its owner finds a backup or control lets go of it.
    """
    held = after(home, rig)
    refused = {
        item.receipt.command.sha256
        for item in found
        if item.receipt is not None and item.receipt.code in _LOST
    }
    named = [order for order in sent_orders(home, rig) if order.digest in refused]
    return held if any(order.after == held for order in named) else None


def set_aside(home: ControlHome, rig: KnownRig) -> str:
    """Return the command that keeps what control holds of a rig's ledger, and begins anew."""
    number, folder = 1, folder_of(home, rig)
    while os.path.lexists(target := home.root / f"lost-{rig.rig[:12]}-{number}"):
        number += 1
    return shlex.join(["mv", str(folder), str(target)])


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
    found: dict[str, KeptReceipt] = {}
    before: dict[str, bytes] = {}
    for item, raw in _read_all(kept, rig):
        found[item.name] = item
        if item.receipt is not None:
            before[item.name] = sha256(raw).digest()
    sent = {order.digest: order for order in sent_orders(home, rig)}
    for told, raw in _read_all(rig.outbox, rig):
        item = _continued(told, sent)
        found[item.name] = item
        if item.receipt is not None and before.get(item.name) != sha256(raw).digest():
            replace(kept / item.name, raw)
    receipts = [item.receipt for item in found.values() if item.receipt is not None]
    shown = [one.checkpoint for one in receipts if _is_shown(one, sent)]
    keep_checkpoints(home, rig, filter(None, shown), shown=True)
    keep_checkpoints(home, rig, filter(None, (one.checkpoint for one in receipts)))
    return [found[name] for name in sorted(found)]


def _is_shown(receipt: Receipt, sent: Mapping[str, SentOrder]) -> bool:
    """Return whether a receipt that is believed shows that its checkpoint goes on from another.

    A refusal does not, and who rewrote a ledger would else have what control holds forgotten.
    """
    order = sent.get(receipt.command.sha256)
    return order is not None and order.after is not None and receipt.consistency is not None


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
    path = folder_of(home, rig) / NEWEST
    try:
        raw = read_foreign(path, most_bytes=MOST_NOTE_BYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path} can't be read ({error.strerror}): move it away") from None
    try:
        held = open_note(raw.decode(errors="replace"), rig.public)
    except LedgerError as error:
        raise UsageError(
            f"{path} is not as control writes it ({error}): move it away, and the next receipt"
            " brings another one"
        ) from None
    return held if held.ledger == rig.ledger else None


def after(home: ControlHome, rig: KnownRig) -> After | None:
    """Return what an order says of the newest checkpoint that control holds."""
    held = newest_checkpoint(home, rig)
    return After(size=held.size, root=strict_base64.encode(held.root)) if held else None


def keep_checkpoints(
    home: ControlHome, rig: KnownRig, notes: Iterable[str], *, shown: bool = False
) -> Checkpoint | None:
    """Keep the first note of a rig, and a newer one that goes on from what is held; return it.

    Args:
        home: of control.
        rig: whose notes these are.
        notes: as the rig signed them.
        shown: each is proven to go on from one that was held. Where that is not so, it is only
            compared with the one that is held, and the next receipt will show a newer one.

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
        if held is None or (shown and made.size > held.size):
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
        raw = read_foreign(path, most_bytes=_MOST_SENT)
        found = msgspec.convert(read(raw, most_bytes=_MOST_SENT, most_levels=4), SentOrder)
        read_instant(found.at)
    except OSError as error:
        raise UsageError(f"{path} can't be read ({error.strerror}): remove it") from None
    except ValueError as error:  # NotStrictJson, ValidationError and read_instant's
        raise UsageError(f"{path} is not as control writes it ({error}): remove it") from None
    return found


def _keep_fork(home: ControlHome, rig: KnownRig, note: str, made: Checkpoint) -> None:
    folder = folder_of(home, rig)
    held = (folder / NEWEST).read_bytes()
    replace(folder / f"fork-{made.size}-held.note", held)
    replace(folder / f"fork-{made.size}-other.note", note.encode())
    raise LedgerError(
        f"rig {rig.rig} has signed two different ledgers of {made.size} events: one was rewritten."
        f" Both notes are kept in {folder} as proof: audit the rig's ledger with --against {folder}"
        ". Only where its owner says that events were lost and given up (thermite ledger"
        f" accept-loss), keep the proof and begin anew: {set_aside(home, rig)}"
    )


def _read_all(folder: Path, rig: KnownRig) -> Iterator[tuple[KeptReceipt, bytes]]:
    """Give the receipts in a folder, one at a time: their bytes are many.

    Raises:
        UnreachableError: it can't be listed, or holds too much.
    """
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if _RECEIPT.fullmatch(entry.name))
    except OSError as error:
        raise UnreachableError(f"{folder} can't be listed: {error.strerror}") from None
    left = MOST_OF_ALL
    for name in names[-MOST_FILES:]:
        item = _read(folder / name, rig)
        if item is None:
            continue
        left -= len(item[1])
        if left < 0:
            raise UnreachableError(
                f"{folder} holds more than {MOST_OF_ALL >> 20} MiB of receipts, as no rig writes"
                " them: look at what fills it, and move that away"
            )
        yield item


def _read(path: Path, rig: KnownRig) -> tuple[KeptReceipt, bytes] | None:
    """Return one receipt, verified, and its very bytes; None when there is none."""
    try:
        raw = read_foreign(path, most_bytes=MAX_COMMAND_BYTES)
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
