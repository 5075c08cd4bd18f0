"""The envelope around everything that is signed: DSSE version 1.

Source: secure-systems-lab DSSE 1.0.2, protocol and envelope pages; ledger and signing, 3.8.
A key id inside an envelope is a hint that anybody may write: it decides nothing here.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from thermite.command import strict_base64
from thermite.command.public_key import PublicKey
from thermite.command.signing_key import SigningKey
from thermite.errors import CommandError
from thermite.schema.command import MAX_COMMAND_BYTES
from thermite.schema.ids import Sha256
from thermite.schema.strict_json import NotStrictJson, read

MOST_LEVELS: Final = 32
"""Deepest nesting of an envelope or a payload (ledger and signing, 3.9, step 2)."""
MOST_SIGNATURES: Final = 8
"""Most signatures of one envelope (ledger and signing, 3.8)."""


@dataclass(frozen=True)
class Envelope:
    """What was signed, byte for byte, and the signatures over it; none is verified yet."""

    payload_type: str
    payload: bytes
    signatures: tuple[bytes, ...]

    def is_signed_by(self, key: PublicKey) -> bool:
        """Return whether one of the signatures is the key's."""
        message = pae(self.payload_type, self.payload)
        return any(key.signed(signature, message) for signature in self.signatures)


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that are signed: DSSE's pre-authentication encoding."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def digest(payload: bytes) -> Sha256:
    """Return a payload's SHA-256, which is its command's identity everywhere."""
    return Sha256(hashlib.sha256(payload).hexdigest())


def seal(payload: bytes, payload_type: str, keys: Sequence[SigningKey]) -> bytes:
    """Return the envelope of a payload, signed by each of the keys.

    Raises:
        RuntimeError: no key, or more than an envelope may carry; a bug of the caller.
    """
    if not 1 <= len(keys) <= MOST_SIGNATURES:
        raise RuntimeError(f"an envelope has 1 to {MOST_SIGNATURES} signatures, not {len(keys)}")
    message = pae(payload_type, payload)
    made = {
        "payloadType": payload_type,
        "payload": strict_base64.encode(payload),
        "signatures": [
            {"keyid": key.public.id, "sig": strict_base64.encode(key.sign(message))} for key in keys
        ],
    }
    return json.dumps(made, separators=(",", ":")).encode() + b"\n"


def read_envelope(raw: bytes) -> Envelope:
    """Return the parts of an envelope, decoded and not yet verified.

    Raises:
        CommandError: `malformed_envelope`: no strict JSON, a field missing or of another
            type, no base64, no signature or more than eight; the sender's fault.
    """
    try:
        found = read(raw, most_bytes=MAX_COMMAND_BYTES, most_levels=MOST_LEVELS)
    except NotStrictJson as error:
        raise _malformed(str(error)) from None
    if not isinstance(found, dict):
        raise _malformed("it is no JSON object")
    signatures = found.get("signatures")
    if not isinstance(signatures, list) or not 1 <= len(signatures) <= MOST_SIGNATURES:
        raise _malformed(f"signatures is no list of 1 to {MOST_SIGNATURES}")
    return Envelope(
        payload_type=_text(found, "payloadType", "payloadType"),
        payload=_bytes(found, "payload", "payload"),
        signatures=tuple(_signature(at, item) for at, item in enumerate(signatures)),
    )


def _signature(at: int, item: object) -> bytes:
    place = f"signatures[{at}]"
    if not isinstance(item, dict):
        raise _malformed(f"{place} is no object")
    if not isinstance(item.get("keyid", ""), str):
        raise _malformed(f"{place}.keyid is no text")
    return _bytes(item, "sig", f"{place}.sig")


def _text(found: dict[str, object], name: str, place: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise _malformed(f"{place} is no text" if name in found else f"{place} is missing")
    return value


def _bytes(found: dict[str, object], name: str, place: str) -> bytes:
    try:
        return strict_base64.decode_either(_text(found, name, place))
    except ValueError as error:
        raise _malformed(f"{place} is {error}") from None


def _malformed(why: str) -> CommandError:
    return CommandError(
        "malformed_envelope",
        f"this file is no signed envelope: {why}: sign it again and send the whole file",
    )
