"""A rig's signed words: its answer to one command, and the card by which control knows it.

Source: ledger and signing, 3.10; the reference page "Contract", Completing a contract.
"""

import hashlib
from typing import TypeVar

import msgspec

from thermite.command.envelope import MOST_LEVELS, read_envelope, seal
from thermite.command.public_key import PublicKey
from thermite.command.signing_key import SigningKey
from thermite.errors import CommandError, UsageError
from thermite.schema.command import (
    MAX_COMMAND_BYTES,
    RECEIPT_TYPE,
    RIG_TYPE,
    Outcome,
    Receipt,
    RigCard,
)
from thermite.schema.ids import Sha256
from thermite.schema.strict import Strict
from thermite.schema.strict_json import NotStrictJson, read

_Words = TypeVar("_Words", bound=Strict)


def receipt_id(digest: Sha256, outcome: Outcome) -> str:
    """Return a receipt's id: it follows from the command's digest and the outcome alone."""
    text = f"thermite/receipt/v1{digest}{outcome}"
    return hashlib.sha256(text.encode("ascii")).hexdigest()[:32]


def seal_receipt(receipt: Receipt, rig_key: SigningKey) -> bytes:
    """Return the receipt's file; the same receipt and key give the same bytes."""
    return seal(msgspec.json.encode(receipt), RECEIPT_TYPE, [rig_key])


def open_receipt(raw: bytes, rig: PublicKey) -> Receipt:
    """Return the receipt that this rig signed.

    Raises:
        CommandError: unreadable, signed by another key, or of another rig; the code as for
            commands.
    """
    receipt = _open(raw, RECEIPT_TYPE, Receipt, rig)
    _check_rig(receipt.rig, rig)
    return receipt


def seal_rig_card(card: RigCard, rig_key: SigningKey) -> bytes:
    """Return the bytes of `outbox/rig.json`."""
    return seal(msgspec.json.encode(card), RIG_TYPE, [rig_key])


def open_rig_card(raw: bytes, rig: PublicKey | None) -> RigCard:
    """Return the card that the rig signed.

    Args:
        raw: the bytes of `outbox/rig.json`.
        rig: the key that control holds; None at the first meeting, when the card is only
            checked against the key that it names itself.

    Raises:
        CommandError: unreadable, signed by another key, or of another rig.
    """
    envelope = read_envelope(raw)
    claimed = _decode(envelope.payload, RigCard) if rig is None else None
    card = _open(raw, RIG_TYPE, RigCard, rig or _key_of(claimed))
    _check_rig(card.rig, _key_of(card) if rig is None else rig)
    if rig is not None and card.key != rig.base64:
        raise CommandError("wrong_rig", f"this card names another key than rig {rig.id} has")
    return card


def _key_of(card: RigCard | None) -> PublicKey:
    if card is None:
        raise RuntimeError("no card to take the key from")
    try:
        return PublicKey.from_base64(card.key)
    except UsageError as error:
        raise CommandError("malformed_payload", f"the rig card's key: {error}") from None


def _open(raw: bytes, payload_type: str, shape: type[_Words], rig: PublicKey) -> _Words:
    envelope = read_envelope(raw)
    if envelope.payload_type != payload_type:
        raise CommandError(
            "unknown_payload_type",
            f"this envelope holds {envelope.payload_type[:80]!a}, and wanted is {payload_type}",
        )
    if not envelope.is_signed_by(rig):
        raise CommandError(
            "no_trusted_signature",
            f"this is not signed by rig {rig.id}: its file was changed, or comes from another rig",
        )
    return _decode(envelope.payload, shape)


def _decode(payload: bytes, shape: type[_Words]) -> _Words:
    try:
        read(payload, most_bytes=MAX_COMMAND_BYTES, most_levels=MOST_LEVELS)
        return msgspec.json.decode(payload, type=shape)
    except (NotStrictJson, msgspec.DecodeError) as error:
        raise CommandError(
            "malformed_payload",
            f"this {shape.__name__} is not as this version writes it: {error}: upgrade Thermite",
        ) from None


def _check_rig(named: str, rig: PublicKey) -> None:
    if named != rig.id:
        raise CommandError("wrong_rig", f"this names rig {named[:40]!a}, and its key is {rig.id}'s")
