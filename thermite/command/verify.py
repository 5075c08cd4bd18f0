"""The rig's side: steps 2 to 7 and 10 from a dropped file to a decision.

Nothing looks inside the payload before a trusted key's signature over it has been found.
Source: ledger and signing, 3.9; its codes are the codes here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from typing import Final

from thermite.command.envelope import Envelope, digest, read_envelope
from thermite.command.instant import read_instant, write_instant
from thermite.command.keyring import Keyring
from thermite.command.payload import LONGEST_WINDOW, read_body, read_payload, times
from thermite.errors import CommandError
from thermite.schema.command import COMMAND_TYPE, Body, CommandPayload, TrustedKey
from thermite.schema.ids import Sha256

SKEW: Final = timedelta(minutes=5)
"""How far the sender's and the rig's clocks may differ (ledger and signing, 3.9, step 10)."""
ROOT_TYPES: Final = frozenset({"update_trust", "revoke_key"})
"""Commands that only a root key gives (ledger and signing, 3.11)."""

_MOST_REMEMBERED: Final = 512
_MOST_REMEMBERED_BYTES: Final = 8 << 10
"""Files whose signatures are not verified again when the same bytes come again for the same keys:
senders repeat themselves, and a flood of copies is cheap to make. 4 MiB in all."""


@dataclass(frozen=True)
class _Signed:
    """What steps 2 to 5 make of a file's bytes: a pure function of them and of the keys."""

    envelope: Envelope
    signers: tuple[TrustedKey, ...]
    payload: CommandPayload
    digest: Sha256


@dataclass(frozen=True)
class Command:
    """A command that a trusted key signed for this rig; `open_command` is its only source.

    raw: the envelope's bytes as they came; signers: the trusted keys that signed and may.
    """

    raw: bytes
    envelope: Envelope
    payload: CommandPayload
    signers: tuple[TrustedKey, ...]
    digest: Sha256
    issued_at: datetime = field(repr=False)
    not_before: datetime = field(repr=False)
    expires_at: datetime = field(repr=False)

    @cached_property
    def body(self) -> Body:
        """The body in its type's shape (step 12).

        Raises:
            CommandError: `malformed_body`; the sender's fault.
        """
        return read_body(self.payload)

    @property
    def assignment(self) -> str:
        """The id that an assignment made by this command has."""
        return self.digest[:32]


def open_command(raw: bytes, keyring: Keyring, *, rig: str, ledger: str, now: datetime) -> Command:
    """Return the command that a trusted key signed for this rig.

    Args:
        raw: the command file's bytes.
        keyring: the keys that this rig trusts.
        rig: this rig's id.
        ledger: this ledger's id.
        now: read once for the whole command; with a time zone.

    Raises:
        CommandError: with the code of the first of steps 2 to 7 that fails.
    """
    signed = (_remembered if len(raw) <= _MOST_REMEMBERED_BYTES else _signed)(raw, keyring)
    payload = signed.payload
    allowed = _allowed(signed.signers, payload, now)
    _check_audience(payload, rig=rig, ledger=ledger)
    issued, begins, ends = times(payload)
    return Command(
        raw=raw,
        envelope=signed.envelope,
        payload=payload,
        signers=tuple(allowed),
        digest=signed.digest,
        issued_at=issued,
        not_before=begins,
        expires_at=ends,
    )


def _signed(raw: bytes, keyring: Keyring) -> _Signed:
    """Return what a trusted key signed (steps 2 to 5).

    Raises:
        CommandError: the first of them that fails.
    """
    envelope = read_envelope(raw)
    if envelope.payload_type != COMMAND_TYPE:
        raise CommandError(
            "unknown_payload_type",
            f"this envelope holds {envelope.payload_type[:80]!a}, and a command is"
            f" {COMMAND_TYPE}: send a command file, or upgrade Thermite on the rig",
        )
    signers = keyring.find_signers(envelope)
    if not signers:
        raise CommandError(
            "no_trusted_signature",
            f"none of the {len(envelope.signatures)} signatures is by a key that this rig trusts:"
            " sign it with a trusted key, or have the root add yours (thermite key list)",
        )
    return _Signed(
        envelope, tuple(signers), read_payload(envelope.payload), digest(envelope.payload)
    )


# What is refused is not remembered, and a keyring is never changed: another trust is another one.
_remembered: Final = lru_cache(maxsize=_MOST_REMEMBERED)(_signed)


def check_times(command: Command, now: datetime) -> None:
    """Return when the command is valid now (step 10).

    Raises:
        CommandError: `not_yet_valid` (wait and try again), `expired`, `window_too_long`.
    """
    window = command.expires_at - min(command.issued_at, command.not_before)
    if window > LONGEST_WINDOW:
        raise CommandError(
            "window_too_long",
            f"this command is valid for {_words(window)}, and the most is"
            f" {_words(LONGEST_WINDOW)}: sign it again with an earlier expires_at",
        )
    clock = write_instant(now.replace(microsecond=0))
    if now < command.not_before - SKEW:
        raise CommandError(
            "not_yet_valid",
            f"this command is valid from {command.payload.not_before} on and this rig's clock"
            f" says {clock}, {_words(command.not_before - now)} earlier: it waits until then; if"
            " a clock is wrong, set it right",
        )
    if now >= command.expires_at + SKEW:
        raise CommandError(
            "expired",
            f"this command expired at {command.payload.expires_at} and this rig's clock says"
            f" {clock}, {_words(now - command.expires_at)} later: sign it again; if a clock is"
            " wrong, set it right first",
        )


def key_problem_now(key: TrustedKey, command_type: str, now: datetime) -> tuple[str, str] | None:
    """Return why a trusted key may not give this kind of command now, as (code, text)."""
    if key.revoked_since is not None:
        return "key_revoked", f"key {key.id} ({key.label}) is revoked since {key.revoked_since}"
    if key.until is not None and now >= read_instant(key.until):
        return "key_expired", f"key {key.id} ({key.label}) was trusted until {key.until}"
    if key.from_ is not None and now < read_instant(key.from_):
        return "key_not_allowed", f"key {key.id} ({key.label}) is trusted from {key.from_} on"
    role = "root" if command_type in ROOT_TYPES else "command"
    if role not in key.roles:
        has = " and ".join(key.roles) or "no role"
        text = f"{command_type} takes the role {role}, and key {key.id} ({key.label}) has {has}"
        return "key_not_allowed", text
    if key.types is not None and command_type not in key.types:
        may = ", ".join(key.types) or "nothing"
        return "key_not_allowed", f"key {key.id} ({key.label}) may give {may}, not {command_type}"
    return None


def _allowed(
    signers: Sequence[TrustedKey], payload: CommandPayload, now: datetime
) -> list[TrustedKey]:
    """Return the signers that may give this command now (step 6); the issuer is among them."""
    problems = {key.id: key_problem_now(key, payload.type, now) for key in signers}
    allowed = [key for key in signers if problems[key.id] is None]
    if payload.issuer not in problems and allowed:
        raise CommandError(
            "issuer_did_not_sign",
            f"the issuer is key {payload.issuer}, and the trusted signers are"
            f" {', '.join(problems)}: sign it with the issuer's key",
        )
    problem = problems.get(payload.issuer) or next(filter(None, problems.values()), None)
    if problem is not None and payload.issuer not in {key.id for key in allowed}:
        code, text = problem
        raise CommandError(code, f"{text}: sign it with another key, or have the root change it")
    return allowed


def _check_audience(payload: CommandPayload, *, rig: str, ledger: str) -> None:
    if payload.rig != rig:
        raise CommandError(
            "wrong_rig",
            f"this command is for rig {payload.rig}, and this rig is {rig}:"
            f" sign it again with --rig {rig}",
        )
    if payload.ledger != ledger:
        raise CommandError(
            "wrong_ledger",
            f"this command is for ledger {payload.ledger}, and this rig's ledger is {ledger}:"
            " run thermite rig add once more and sign it again",
        )


def _words(span: timedelta) -> str:
    """Return a time span as its two largest units, e.g. `3 h 2 min`."""
    seconds = max(0, int(span.total_seconds()))
    units = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))
    parts = []
    for name, size in units:
        if seconds >= size:
            parts.append(f"{seconds // size} {name}")
            seconds %= size
    return " ".join(parts[:2]) or "0 s"
