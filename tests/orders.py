"""A rig's folder with keys and trust, and signed commands for it: what tests drop in an inbox."""

import secrets
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from thermite.command.envelope import seal
from thermite.command.instant import write_instant
from thermite.command.signing_key import SigningKey
from thermite.schema.command import COMMAND_TYPE, TrustedKey
from thermite.schema.offer import TrustCache

LEDGER = "1" * 32


def trusted(key: SigningKey, **rights: object) -> TrustedKey:
    """A key as a trust lists it; root and command unless said."""
    given: dict[str, Any] = {"roles": ["root", "command"], "label": "test", **rights}
    return TrustedKey(id=key.public.id, public=key.public.base64, **given)


def at(minutes: float) -> str:
    """A time in RFC 3339, so many minutes from now."""
    moment = datetime.now(UTC) + timedelta(minutes=minutes)
    return write_instant(moment.replace(microsecond=0))


@dataclass
class Orders:
    """Makes and drops commands for one rig."""

    state: Path
    key: SigningKey = field(default_factory=SigningKey.generate)
    rig_key: SigningKey = field(default_factory=SigningKey.generate)
    ledger: str = LEDGER

    @property
    def new(self) -> Path:
        return self.state / "inbox" / "new"

    @property
    def rig(self) -> str:
        return self.rig_key.public.id

    def make_folders(self) -> None:
        for name in ("tmp", "new", "work", "done", "refused"):
            (self.state / "inbox" / name).mkdir(parents=True)
        (self.state / "outbox").mkdir()

    def write_trust(self, *keys: TrustedKey, version: int = 1) -> None:
        cache = TrustCache(
            v=1,
            version=version,
            rig=self.rig,
            ledger=self.ledger,
            keys=list(keys) or [trusted(self.key)],
        )
        temporary = self.state / "trust.json.new"
        temporary.write_bytes(msgspec.json.encode(cache))
        temporary.rename(self.state / "trust.json")

    def payload(
        self, kind: str = "checkpoint_now", body: object = None, **changed: object
    ) -> bytes:
        """The payload's bytes; changed: fields given another value."""
        fields: dict[str, Any] = {
            "v": 1,
            "id": secrets.token_hex(16),
            "type": kind,
            "rig": self.rig,
            "ledger": self.ledger,
            "issuer": self.key.public.id,
            "issued_at": at(0),
            "not_before": at(0),
            "expires_at": at(60),
            "after": None,
            "body": {} if body is None else body,
            **changed,
        }
        return msgspec.json.encode(fields)

    def command(
        self, kind: str = "checkpoint_now", body: object = None, **changed: object
    ) -> bytes:
        """A signed envelope."""
        return self.sealed(self.payload(kind, body, **changed))

    def sealed(self, payload: bytes, *keys: SigningKey) -> bytes:
        return seal(payload, COMMAND_TYPE, list(keys) or [self.key])

    def drop(self, raw: bytes, name: str | None = None) -> Path:
        """Write in tmp/, then rename into new/, as `thermite inbox drop` does."""
        name = name or f"{secrets.token_hex(6)}.cmd.json"
        temporary = self.state / "inbox" / "tmp" / secrets.token_hex(8)
        temporary.write_bytes(raw)
        target = self.new / name
        temporary.rename(target)
        return target
