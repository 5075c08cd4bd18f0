"""An order's payload: whom it is for, from when until when, and what it asks."""

import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from thermite.command.envelope import digest, read_envelope
from thermite.command.instant import write_instant
from thermite.command.keyring import SigningKey
from thermite.command.sign import sign_command
from thermite.control.rigs import KnownRig
from thermite.schema.command import (
    After,
    AssignBody,
    CommandPayload,
    CommandType,
    Import,
    Providers,
)
from thermite.schema.contract import McpServer
from thermite.schema.ids import Sha256
from thermite.schema.strict import Strict

VALID_FOR: Final = timedelta(days=1)
"""How long an order may lie before a rig accepts it: a rig that is off for the night still
does, and a forgotten file starts nothing next week. At most 7 days (ledger and signing, 3.8)."""


class Order(Strict):
    """A signed order: its bytes, and the names it goes by; after: the checkpoint it names."""

    raw: bytes
    digest: Sha256
    id: str
    type: CommandType
    after: After | None = None

    @property
    def assignment(self) -> str:
        """The id of the assignment that an `assign_campaign` makes."""
        return self.digest[:32]


def assign_body(
    contract: bytes,
    imports: Sequence[Import],
    servers: Sequence[McpServer],
    providers: Providers,
) -> AssignBody:
    """Return the body of `assign_campaign`; contract: the bytes as they are hashed."""
    return AssignBody(
        contract=msgspec.Raw(contract),
        imports=list(imports),
        mcp_servers=list(servers),
        providers=providers,
    )


def sign_order(
    kind: CommandType,
    body: Strict,
    *,
    rig: KnownRig,
    keys: Sequence[SigningKey],
    after: After | None,
    now: datetime,
) -> Order:
    """Return an order for one rig, signed by each of the keys; the first is the issuer.

    Args:
        kind: the command's type.
        body: that type's body.
        rig: whom it is for.
        keys: at least one.
        after: the newest checkpoint that control holds of this rig.
        now: with a time zone.

    Raises:
        UsageError: larger than a rig reads.
    """
    issued = now.replace(microsecond=0)
    payload = CommandPayload(
        v=1,
        id=secrets.token_hex(16),
        type=kind,
        rig=rig.rig,
        ledger=rig.ledger,
        issuer=keys[0].public.id,
        issued_at=write_instant(issued),
        not_before=write_instant(issued),
        expires_at=write_instant(issued + VALID_FOR),
        after=after,
        body=msgspec.Raw(msgspec.json.encode(body)),
    )
    raw = sign_command(payload, keys)
    return Order(
        raw=raw,
        digest=digest(read_envelope(raw).payload),
        id=payload.id,
        type=payload.type,
        after=after,
    )
