"""Control's side: a payload becomes the bytes that are sent."""

from collections.abc import Sequence

import msgspec

from thermite.command.envelope import seal
from thermite.command.payload import read_body, read_payload
from thermite.command.signing_key import SigningKey
from thermite.errors import UsageError
from thermite.schema.command import COMMAND_TYPE, MAX_COMMAND_BYTES, CommandPayload


def sign_command(payload: CommandPayload, keys: Sequence[SigningKey]) -> bytes:
    """Return the signed envelope of a command.

    What a rig would refuse to read is not signed in the first place.

    Raises:
        CommandError: `malformed_payload` or `malformed_body`.
        UsageError: larger than a rig reads.
        RuntimeError: the issuer's key is not among the keys; a bug of the caller.
    """
    if payload.issuer not in {key.public.id for key in keys}:
        raise RuntimeError(f"the issuer {payload.issuer} is none of the signing keys")
    raw = msgspec.json.encode(payload)
    read_body(read_payload(raw))
    sealed = seal(raw, COMMAND_TYPE, keys)
    if len(sealed) > MAX_COMMAND_BYTES:
        raise UsageError(
            f"the signed command has {len(sealed)} bytes, and a rig reads at most"
            f" {MAX_COMMAND_BYTES}: shorten the contract's task or options"
        )
    return sealed
