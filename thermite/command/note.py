"""A checkpoint as a signed note: five lines that a person can read and anybody can verify.

Source: ledger and signing, 3.4; C2SP signed-note and tlog-checkpoint. One text has one
meaning: a note that differs in any byte from what `sign_note` writes is refused.
"""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from thermite.command import strict_base64
from thermite.command.instant import read_instant
from thermite.command.public_key import PublicKey
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError

MOST_NOTE_BYTES: Final = 1024
"""A note takes 384 bytes (ledger and signing, 2.7)."""

_HASH_BYTES: Final = 32
_KEY_HASH_BYTES: Final = 4
_SIGNATURE_BYTES: Final = 64
_ED25519: Final = b"\x0a\x01"  # line end, then C2SP's number of the kind of key
_FORM: Final = re.compile(
    r"thermite/(?P<rig>[0-9a-f]{32})/(?P<ledger>[0-9a-f]{32})\n"
    r"(?P<size>[1-9][0-9]{0,15})\n"
    r"(?P<root>[A-Za-z0-9+/]{43}=)\n"
    r"head (?P<head>[A-Za-z0-9+/]{43}=)\n"
    r"time (?P<time>[0-9T:.-]{19,26}Z)\n"
    r"\n"
    "\u2014 (?P<name>[^ \n]{1,128}) (?P<signature>[A-Za-z0-9+/=]{1,128})\n"
)


@dataclass(frozen=True)
class Checkpoint:
    """What a rig says about its ledger: Merkle root and chain head over events 1 … size.

    rig, ledger: ids; root, head: 32 bytes each; time: RFC 3339, UTC.
    """

    rig: str
    ledger: str
    size: int
    root: bytes
    head: bytes
    time: str

    @property
    def name(self) -> str:
        """The note's first line, which is also the name of the key that signs it."""
        return f"thermite/{self.rig}/{self.ledger}"

    @property
    def text(self) -> str:
        """The five lines that are signed, each with its line end."""
        return (
            f"{self.name}\n{self.size}\n{strict_base64.encode(self.root)}\n"
            f"head {strict_base64.encode(self.head)}\ntime {self.time}\n"
        )


def sign_note(checkpoint: Checkpoint, rig_key: SigningKey) -> str:
    """Return the signed note of a checkpoint.

    Raises:
        RuntimeError: a value that no note can hold; a bug of the caller.
    """
    signature = rig_key.sign(checkpoint.text.encode())
    marked = strict_base64.encode(_key_hash(checkpoint.name, rig_key.public) + signature)
    note = f"{checkpoint.text}\n\u2014 {checkpoint.name} {marked}\n"
    try:
        read_note(note)  # its form; the signature is our own
    except LedgerError as error:
        raise RuntimeError(f"no note can hold {checkpoint}: {error}") from None
    return note


def open_note(text: str, rig: PublicKey) -> Checkpoint:
    """Return the checkpoint that the rig's key signed.

    Raises:
        LedgerError: another form, or not signed by this key; the fault of the file or of
            whoever changed it.
    """
    checkpoint, name, marked = _parse(text)
    key_hash, signature = marked[:_KEY_HASH_BYTES], marked[_KEY_HASH_BYTES:]
    if name != checkpoint.name or key_hash != _key_hash(name, rig):
        raise LedgerError(f"this checkpoint is signed by another key than rig {rig.id}'s")
    if not rig.signed(signature, checkpoint.text.encode()):
        raise LedgerError(
            f"this checkpoint's signature is not that of rig {rig.id}: it was changed"
        )
    return checkpoint


def read_note(text: str) -> Checkpoint:
    """Return what a note says, without looking at its signature: for showing it only.

    Raises:
        LedgerError: another form.
    """
    return _parse(text)[0]


def _parse(text: str) -> tuple[Checkpoint, str, bytes]:
    found = _FORM.fullmatch(text) if len(text) <= MOST_NOTE_BYTES else None
    if found is None:
        raise LedgerError("this is no checkpoint: its lines are not those of a signed note")
    try:
        root = strict_base64.decode(found["root"])
        head = strict_base64.decode(found["head"])
        marked = strict_base64.decode(found["signature"])
        read_instant(found["time"])
    except ValueError as error:
        raise LedgerError(f"this is no checkpoint: {error}") from None
    if (len(root), len(head)) != (_HASH_BYTES, _HASH_BYTES):
        raise LedgerError("this is no checkpoint: root and head have 32 bytes each")
    if len(marked) != _KEY_HASH_BYTES + _SIGNATURE_BYTES:
        raise LedgerError("this is no checkpoint: its signature has not 64 bytes")
    checkpoint = Checkpoint(
        rig=found["rig"],
        ledger=found["ledger"],
        size=int(found["size"]),
        root=root,
        head=head,
        time=found["time"],
    )
    return checkpoint, found["name"], marked


def _key_hash(name: str, key: PublicKey) -> bytes:
    return hashlib.sha256(name.encode() + _ED25519 + key.raw).digest()[:_KEY_HASH_BYTES]
