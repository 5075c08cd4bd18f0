"""A payload's bytes -> its fields, with everything refused that two readers could differ on.

Source: ledger and signing, 3.8 and steps 5 and 12 of 3.9.
"""

from datetime import datetime, timedelta
from typing import Final, cast

import msgspec

from thermite.command.envelope import MOST_LEVELS
from thermite.command.instant import read_instant
from thermite.errors import CommandError
from thermite.schema.command import BODY_OF, MAX_COMMAND_BYTES, Body, CommandPayload
from thermite.schema.ids import is_hex32
from thermite.schema.strict_json import NotStrictJson, read, shown

LARGEST_INTEGER: Final = 2**53 - 1
"""Beyond it JSON readers disagree on the value (RFC 8259, 6)."""
LONGEST_WINDOW: Final = timedelta(days=7)
"""Longest time from issue to expiry (ledger and signing, 3.8)."""

_UNKNOWN_FIELD: Final = "Object contains unknown field"  # msgspec's own words
_IDS: Final = ("id", "rig", "ledger", "issuer")


def read_payload(raw: bytes) -> CommandPayload:
    """Return the fields of verified payload bytes; its body stays as bytes.

    Raises:
        CommandError: `malformed_payload`; the sender's fault.
    """
    try:
        tree = read(raw, most_bytes=MAX_COMMAND_BYTES, most_levels=MOST_LEVELS)
        _check_integers(tree)
        payload = msgspec.json.decode(raw, type=CommandPayload)
        _check_ids(payload)
        _check_order(payload)
    except (NotStrictJson, msgspec.DecodeError, ValueError) as error:
        raise _malformed(str(error)) from None
    problem = _body_problem(payload)
    if problem is not None and problem.startswith(_UNKNOWN_FIELD):
        raise _malformed(f"body: {problem}")
    return payload


def read_body(payload: CommandPayload) -> Body:
    """Return the body in its type's shape.

    Raises:
        CommandError: `malformed_body`; the sender's fault.
    """
    try:
        body = msgspec.json.decode(payload.body, type=BODY_OF[payload.type])
    except msgspec.DecodeError as error:
        raise CommandError(
            "malformed_body",
            f"the body of this {payload.type} is not as the command page says: {error}:"
            " put it right and sign it again",
        ) from None
    return cast("Body", body)


def times(payload: CommandPayload) -> tuple[datetime, datetime, datetime]:
    """Return issued_at, not_before and expires_at.

    Raises:
        ValueError: one is no time in UTC; the text names the field.
    """
    found = []
    for name in ("issued_at", "not_before", "expires_at"):
        try:
            found.append(read_instant(getattr(payload, name)))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return found[0], found[1], found[2]


def _check_ids(payload: CommandPayload) -> None:
    for name in _IDS:
        if not is_hex32(getattr(payload, name)):
            raise ValueError(f"{name} is not 32 lower-case hex digits")
    if payload.after is not None and payload.after.size < 1:
        raise ValueError(f"after.size is {payload.after.size}, and a checkpoint covers 1 or more")


def _check_order(payload: CommandPayload) -> None:
    issued, begins, ends = times(payload)
    if ends < issued or ends < begins:
        earlier = "issued_at" if ends < issued else "not_before"
        raise ValueError(f"expires_at {payload.expires_at} is before {earlier}")


def _body_problem(payload: CommandPayload) -> str | None:
    try:
        read_body(payload)
    except CommandError as error:
        cause = str(error).partition("command page says: ")[2]
        return cause or str(error)
    return None


def _check_integers(tree: object) -> None:
    """Walk without recursion; the tree is at most `MOST_LEVELS` deep."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
        elif isinstance(node, int) and abs(node) > LARGEST_INTEGER:
            raise ValueError(f"the integer {shown(str(node)[:20])} is beyond 2^53 - 1")


def _malformed(why: str) -> CommandError:
    return CommandError(
        "malformed_payload",
        f"this command's payload is not as the command page says: {why}:"
        " sign it again with a Thermite of the rig's version",
    )
