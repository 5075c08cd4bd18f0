"""Payloads and keys to bend: one good order, and the means to change one field of it."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from thermite.command.envelope import seal
from thermite.command.keyring import Keyring, SigningKey
from thermite.command.verify import Command, open_command
from thermite.schema.command import COMMAND_TYPE, TrustedKey

RIG = "a1" * 16
LEDGER = "b2" * 16
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
ALICE = SigningKey.from_raw(b"\x01" * 32)
BOB = SigningKey.from_raw(b"\x02" * 32)


def trusted(key: SigningKey, **rights: object) -> TrustedKey:
    good = TrustedKey(
        id=key.public.id,
        public=key.public.base64,
        label="a laptop",
        roles=["root", "command"],
    )
    return msgspec.structs.replace(good, **rights)


def fields(**changed: object) -> dict[str, Any]:
    return {
        "v": 1,
        "id": "0c" * 16,
        "type": "checkpoint_now",
        "rig": RIG,
        "ledger": LEDGER,
        "issuer": ALICE.public.id,
        "issued_at": "2026-03-01T12:00:00Z",
        "not_before": "2026-03-01T12:00:00Z",
        "expires_at": "2026-03-02T12:00:00Z",
        "after": None,
        "body": {},
        **changed,
    }


def payload(**changed: object) -> bytes:
    return json.dumps(fields(**changed)).encode()


def order(*keys: SigningKey, **changed: object) -> bytes:
    return seal(payload(**changed), COMMAND_TYPE, keys or (ALICE,))


def opened(raw: bytes, *, trust: Sequence[TrustedKey] = (), now: datetime = NOW) -> Command:
    keyring = Keyring(trust or [trusted(ALICE)])
    return open_command(raw, keyring, rig=RIG, ledger=LEDGER, now=now)
