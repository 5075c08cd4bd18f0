"""A promotion to carry away: make the one file from a ledger, and check such a file.

Source: ledger and signing, 3.14.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from thermite.audit.evidence import Evidence
from thermite.audit.verify import promotion_proof
from thermite.command import strict_base64
from thermite.command.envelope import digest, read_envelope
from thermite.command.note import open_note
from thermite.command.public_key import PublicKey
from thermite.errors import CommandError, LedgerError, NotFoundError, UsageError
from thermite.ledger.chain import leaf
from thermite.ledger.encode import decode
from thermite.ledger.merkle import root_of_carried
from thermite.ledger.replay import Recorded, recorded
from thermite.schema import event as e
from thermite.schema.promotion import (
    FORMAT,
    MOST_FILE_BYTES,
    CarriedEvent,
    Made,
    PromotionFile,
    Summary,
)
from thermite.schema.strict import Strict
from thermite.schema.strict_json import NotStrictJson, read

_MOST_LEVELS: Final = 32
_FEWEST_DIGITS: Final = 7
"""Of a commit that names a promotion, as git shortens them."""
_OF_ASSIGNMENT: Final = (e.AssignmentCreated, e.LocalJob, e.McpServers, e.AssignmentEnded)
_OF_ATTEMPT: Final = (
    e.Build,
    e.JudgeStarted,
    e.Run,
    e.Check,
    e.Block,
    e.Decision,
    e.Verdict,
    e.ChampionPromoted,
)
_OF_MACHINE: Final = (e.IsolationProbe, e.RigSelftest)


class Carried(Strict):
    """A promotion file that was checked; problem: why it fails, or None.

    events, size: how many are carried, of how many; coin_open: the seed is not revealed yet;
    key_pinned: somebody named the key, else it is the file's own word. command: whether one is
    carried, which is then the one that the events name; patch: as carried, which only the
    commits can prove.
    """

    summary: Summary
    rig_key: str
    events: int
    size: int
    coin_open: bool
    key_pinned: bool
    command: bool
    patch: str | None
    problem: str | None = None


def find(path: Path, which: str) -> Recorded:
    """Return the promotion that a number, an event id or a candidate's commit names.

    Raises:
        NotFoundError: none is named so.
        UsageError: several are.
        LedgerError: the ledger was changed.
    """
    found = [row for row in recorded(path) if _is_named(row, which)]
    if not found:
        raise NotFoundError(
            f"no promotion is called {which!a}: give the number or id of its champion_promoted"
            f" event, or at least {_FEWEST_DIGITS} digits of the candidate's commit"
        )
    if len(found) > 1:
        seqs = ", ".join(str(row.seq) for row in found)
        raise UsageError(f"{which} names {len(found)} promotions: give one number of {seqs}")
    return found[0]


def export(
    path: Path, which: str, *, made: Made, blobs: Path | None = None, patch: str | None = None
) -> PromotionFile:
    """Return one promotion with all that it rests on; the ledger is only read.

    Args:
        path: the ledger.
        which: its number, event id, or the candidate's commit.
        made: which version writes it, and when.
        blobs: the folder that keeps commands by their digest.
        patch: what to carry for readers.

    Raises:
        NotFoundError: there is no such promotion.
        UsageError: several have that name.
        LedgerError: the ledger was changed, or no checkpoint signs the promotion yet.
    """
    target = find(path, which)
    rows = sorted(_chosen(path, target), key=lambda row: row.seq)
    evidence = Evidence([row.event for row in rows], target.event)
    note, key, proof = promotion_proof(path, [row.seq for row in rows])
    return PromotionFile(
        format=FORMAT,
        made=made,
        summary=evidence.summary(),
        rig_key=key,
        checkpoint=note,
        events=[CarriedEvent(seq=row.seq, body=row.body.decode()) for row in rows],
        proof=[strict_base64.encode(hashed) for hashed in proof],
        command=_envelope(rows, blobs),
        patch=patch,
    )


def verify(raw: bytes, rig_key: PublicKey | None = None) -> Carried:
    """Return what a promotion file shows; everything in it is checked again.

    Args:
        raw: the file's bytes.
        rig_key: the key that must have signed; None: the one that the file names.

    Raises:
        LedgerError: the bytes are no promotion file, so there is nothing to check.
    """
    whole = _read(raw)
    key = _key(whole.rig_key)
    said = Carried(
        summary=whole.summary,
        rig_key=whole.rig_key,
        events=len(whole.events),
        size=0,
        coin_open=False,
        key_pinned=rig_key is not None,
        command=whole.command is not None,
        patch=whole.patch,
    )
    try:
        _check_pin(key, rig_key)
        size = _check_proof(whole, key)
        events = [decode_event(event) for event in whole.events]
        _check_command(whole.command, events)
        coin_open = _check_events(whole.summary, events)
    except LedgerError as error:
        return msgspec.structs.replace(said, problem=str(error))
    return msgspec.structs.replace(said, size=size, coin_open=coin_open)


def _is_named(row: Recorded, which: str) -> bool:
    data = row.event.data
    if not isinstance(data, e.ChampionPromoted):
        return False
    by_commit = len(which) >= _FEWEST_DIGITS and data.commit.startswith(which)
    return which in {str(row.seq), row.event.id} or by_commit


def _chosen(path: Path, target: Recorded) -> Iterator[Recorded]:
    """Give the events that a promotion rests on, those of the machine at last."""
    machine: dict[type, Recorded] = {}
    judged = False
    promoted = target.event.data
    assert isinstance(promoted, e.ChampionPromoted)  # noqa: S101 (for the type checker)
    for row in recorded(path):
        data, ours = row.event.data, row.event.assignment == target.event.assignment
        attempt = ours and getattr(data, "attempt", None) == promoted.attempt
        judged = judged or (attempt and isinstance(data, e.Build))
        accepted = isinstance(data, e.CommandAccepted) and data.type == "assign_campaign"
        if isinstance(data, _OF_MACHINE) and not judged:
            machine[type(data)] = row
            continue
        ours = ours and (accepted or isinstance(data, _OF_ASSIGNMENT))
        if row.seq == 1 or ours or (attempt and isinstance(data, _OF_ATTEMPT)):
            yield row
    yield from machine.values()


def _envelope(rows: Sequence[Recorded], blobs: Path | None) -> str | None:
    for row in rows:
        if isinstance(row.event.data, e.CommandAccepted) and blobs is not None:
            kept = blobs / row.event.data.sha256
            return strict_base64.encode(kept.read_bytes()) if kept.is_file() else None
    return None


def _read(raw: bytes) -> PromotionFile:
    try:
        told = read(raw, most_bytes=MOST_FILE_BYTES, most_levels=_MOST_LEVELS)
        return msgspec.convert(told, PromotionFile)
    except (NotStrictJson, msgspec.ValidationError) as error:
        raise LedgerError(f"it is no promotion file: {error}") from None


def _key(text: str) -> PublicKey:
    try:
        return PublicKey(strict_base64.decode(text))
    except (ValueError, UsageError) as error:
        raise LedgerError(f"it is no promotion file: its rig_key is no key ({error})") from None


def _check_pin(key: PublicKey, rig_key: PublicKey | None) -> None:
    if rig_key is not None and rig_key.raw != key.raw:
        raise LedgerError(f"rig key {key.fingerprint} signed it, and not {rig_key.fingerprint}")


def _check_proof(whole: PromotionFile, key: PublicKey) -> int:
    """Return the size of the checkpoint whose root holds all carried events."""
    seqs = [event.seq for event in whole.events]
    if not seqs or seqs[0] != 1 or seqs != sorted(set(seqs)):
        raise LedgerError("its events do not begin with event 1 and go up")
    note = open_note(whole.checkpoint, key)
    leaves = {event.seq - 1: leaf(event.body.encode()) for event in whole.events}
    try:
        proof = [strict_base64.decode(hashed) for hashed in whole.proof]
    except ValueError:
        raise LedgerError("a hash of its proof is no base64") from None
    if root_of_carried(leaves, note.size, proof) != note.root:
        raise LedgerError("its events are not those that the checkpoint signs")
    opened = decode_event(whole.events[0]).data
    ours = isinstance(opened, e.LedgerOpened) and opened.rig_key == whole.rig_key
    if not ours or (note.rig, note.ledger) != (opened.rig, opened.ledger):
        raise LedgerError("its event 1, its rig key and its checkpoint are of different rigs")
    return note.size


def _check_command(carried: str | None, events: Sequence[e.Event]) -> None:
    """Compare the payload of the carried envelope with the digests that the events name."""
    if carried is None:
        return
    try:
        payload = read_envelope(strict_base64.decode(carried)).payload
    except (ValueError, CommandError) as error:
        raise LedgerError(f"its command can't be read: {error}") from None
    created = e.AssignmentCreated | e.LocalJob
    named = {event.command for event in events if isinstance(event.data, created)}
    named |= {event.data.sha256 for event in events if isinstance(event.data, e.CommandAccepted)}
    if named != {digest(payload)}:
        raise LedgerError("its command is not the one that its events name")


def _check_events(said: Summary, events: Sequence[e.Event]) -> bool:
    """Return whether the coin is still secret."""
    promoted = [event for event in events if isinstance(event.data, e.ChampionPromoted)]
    if len(promoted) != 1:
        raise LedgerError(f"it carries {len(promoted)} promotions, and one is the rule")
    evidence = Evidence(events, promoted[0])
    evidence.check()
    true = evidence.summary()
    for name in Summary.__struct_fields__:
        if getattr(true, name) != getattr(said, name):
            raise LedgerError(f"its summary says another {name} than its events")
    return evidence.seed is None


def decode_event(carried: CarriedEvent) -> e.Event:
    """Return a carried event.

    Raises:
        LedgerError: this version can't read it.
    """
    try:
        return decode(carried.body.encode())
    except ValueError as error:
        raise LedgerError(f"event {carried.seq} can't be read: {error}") from None
