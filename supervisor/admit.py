"""Steps 2 to 7 for one file's bytes, by `thermite.command.verify` and the trust cache.

A stale or forged cache can only make this end refuse or offer more: the harness verifies
again with the trust that its ledger holds. Source: ledger and signing, 3.9 and 3.11.
"""

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from thermite.command.keyring import Keyring
from thermite.command.verify import SKEW, open_command
from thermite.errors import CommandError, UsageError
from thermite.schema.offer import TrustCache
from thermite.schema.strict_json import NotStrictJson, read

BEFORE_A_SIGNATURE: Final = frozenset(
    {"malformed_envelope", "unknown_payload_type", "no_trusted_signature"}
)
"""Refusals before step 5: nobody with a trusted key is owed a receipt."""
_MOST_TRUST_BYTES: Final = 1 << 20  # 64 keys take some 20 KiB; more is no cache of ours
_MOST_LEVELS: Final = 8


@dataclass(frozen=True)
class Admitted:
    """A trusted key signed this for us; opens: when it may be offered (step 10, early)."""

    digest: str
    opens: datetime


@dataclass(frozen=True)
class Refused:
    """The first of steps 2 to 7 that failed; signed: a trusted key's signature was found."""

    code: str
    message: str
    signed: bool


class Gate:
    """Who is trusted now, as `trust.json` says; read again whenever the file has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, ...] | None = None
        self._trust: TrustCache | None = None
        self._keyring = Keyring([])
        self.problem: str | None = None
        self.readings = 0
        """How often the file was read: what was judged by an earlier reading may be out of date."""

    def refresh(self) -> bool:
        """Return whether there is a trust to go by; `problem` says why not."""
        try:
            found = self._path.stat()
            seen = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
            if seen != self._seen:
                self._load(self._path.read_bytes())
                self._seen = seen
                self.problem = None
        except (OSError, NotStrictJson, msgspec.DecodeError, UsageError) as error:
            self._trust, self._seen = None, None
            why = os.strerror(error.errno or 0) if isinstance(error, OSError) else str(error)
            self.problem = f"{self._path.name}: {why}"
        return self._trust is not None

    def admit(self, raw: bytes, now: datetime) -> Admitted | Refused:
        """Return what steps 2 to 7 say about a file's bytes.

        Raises:
            RuntimeError: there is no trust; a bug of the caller.
        """
        if self._trust is None:
            raise RuntimeError("nothing is admitted without a trust")
        try:
            command = open_command(
                raw, self._keyring, rig=self._trust.rig, ledger=self._trust.ledger, now=now
            )
        except CommandError as error:
            return Refused(error.code, str(error), signed=error.code not in BEFORE_A_SIGNATURE)
        return Admitted(command.digest, command.not_before - SKEW)

    def _load(self, raw: bytes) -> None:
        self.readings += 1
        read(raw, most_bytes=_MOST_TRUST_BYTES, most_levels=_MOST_LEVELS)
        trust = msgspec.json.decode(raw, type=TrustCache)
        self._keyring = Keyring(trust.keys)
        self._trust = trust
