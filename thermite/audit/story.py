"""Who did what, and when: what an audit tells besides its findings.

Source: ledger and signing, 3.7 (what an audit prints) and 3.11 (revocation).
"""

from collections import Counter
from datetime import datetime
from typing import Final, Literal

from thermite.audit.findings import Findings
from thermite.command.instant import read_instant
from thermite.ledger.checkpoint import SIGNED_AT_ONCE
from thermite.schema import event as e
from thermite.schema.audit import ClockStep, Finding, FindingCode, OpenCoin, RevokedUse
from thermite.schema.command import TrustedKey

STEP_SECONDS: Final = 1.0
"""Clocks of one machine that drift by more between two events were set, or slept."""
_NS: Final = 1_000_000_000
_TELLING: Final = frozenset(
    {
        e.AssignmentCreated,
        e.AssignmentEnded,
        e.AttemptStarted,
        e.CommandAccepted,
        e.CommandRefused,
        e.KeyRevoked,
        e.LedgerGap,
        e.LocalJob,
        e.RefusalsSuppressed,
        e.TrustReset,
        e.TrustSet,
    }
)
"""The types that a story is told by; most events are of others."""


class Story:
    """Counts over the events, in order."""

    def __init__(self, findings: Findings) -> None:
        self.first_at: str | None = None
        self.last_at: str | None = None
        self.accepted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.commands: list[tuple[int, e.CommandAccepted, str]] = []
        self.revoked_uses: list[RevokedUse] = []
        self.clock_steps: list[ClockStep] = []
        self.must_be_signed = 0
        """The last event whose own transaction must have carried a checkpoint; 0: none."""
        self._findings = findings
        self._revoked: dict[str, str] = {}
        self._coins: dict[str, int] = {}
        self._clock: tuple[str, datetime, int] | None = None

    @property
    def open_coins(self) -> list[OpenCoin]:
        """Assignments that run, and so keep their order seed secret."""
        return [OpenCoin(assignment=name, attempts=count) for name, count in self._coins.items()]

    def take(self, seq: int, event: e.Event) -> None:
        """Read one event."""
        self.first_at = self.first_at or event.at
        self.last_at = event.at
        self._look_at_clock(seq, event)
        if e.TAG_OF[type(event.data)] in SIGNED_AT_ONCE:
            self.must_be_signed = seq
        if type(event.data) in _TELLING:
            self._read(seq, event)

    def _read(self, seq: int, event: e.Event) -> None:
        self._read_assignment(event)
        match event.data:
            case e.CommandAccepted() as data:
                self._accept(seq, data, event.at)
            case e.CommandRefused(code=code):
                self.refused[code] += 1
            case e.RefusalsSuppressed(count=count):
                self.refused["suppressed"] += count
            case e.KeyRevoked() as data:
                self._revoke(data)
            case e.TrustSet(keys=keys) | e.TrustReset(keys=keys):
                self._trust(keys)
            case _:
                pass
        match event.data:
            case e.TrustReset():
                why = "the rig's owner replaced all trust by hand: the root key was lost, or taken"
                self._add("trust_reset", "finding", seq, why)
            case e.LedgerGap(from_=first, to=last):
                lost = f"events {first} to {last} were lost, and the owner went on"
                if last < first:
                    lost = f"a sender's checkpoint did not fit before event {first}, and the owner"
                    lost += " went on"
                self._warn("ledger_gap", seq, lost)
            case _:
                pass

    def _read_assignment(self, event: e.Event) -> None:
        about = event.assignment or ""
        match event.data:
            case e.AssignmentCreated() | e.LocalJob():
                self._coins.setdefault(about, 0)
            case e.AttemptStarted() if about in self._coins:
                self._coins[about] += 1
            case e.AssignmentEnded():
                self._coins.pop(about, None)
            case _:
                pass

    def _look_at_clock(self, seq: int, event: e.Event) -> None:
        at = _moment(event.at)
        before, self._clock = self._clock, None if at is None else (event.boot, at, event.mono_ns)
        if before is None or at is None or before[0] != event.boot:
            return
        step = (at - before[1]).total_seconds() - (event.mono_ns - before[2]) / _NS
        if abs(step) > STEP_SECONDS:
            self.clock_steps.append(ClockStep(seq=seq, seconds=round(step, 3)))

    def _accept(self, seq: int, data: e.CommandAccepted, at: str) -> None:
        self.accepted[data.issuer] += 1
        self.commands.append((seq, data, at))
        for key in sorted({data.issuer, *data.keys} & self._revoked.keys()):
            self._findings.add(
                Finding(
                    code="command_of_revoked_key",
                    severity="finding",
                    seq=seq,
                    expected=None,
                    got=key,
                    explain=f"command {data.id} was accepted after its key {key} was revoked",
                )
            )

    def _revoke(self, data: e.KeyRevoked) -> None:
        self._revoked[data.key] = data.since
        self.revoked_uses = [use for use in self.revoked_uses if use.key != data.key]
        since = _moment(data.since)
        for seq, command, at in self.commands:
            accepted = _moment(at)
            signed = data.key == command.issuer or data.key in command.keys
            if signed and (since is None or accepted is None or accepted >= since):
                self.revoked_uses.append(RevokedUse(seq=seq, key=data.key, since=data.since))
                self._warn(
                    "command_of_revoked_key",
                    seq,
                    f"command {command.id} is of key {data.key}, which was revoked later as not"
                    f" trusted since {data.since}",
                )

    def _trust(self, keys: list[TrustedKey]) -> None:
        self._revoked = {key.id: key.revoked_since for key in keys if key.revoked_since is not None}

    def _warn(self, code: FindingCode, seq: int, explain: str) -> None:
        self._add(code, "warning", seq, explain)

    def _add(
        self, code: FindingCode, severity: Literal["finding", "warning"], seq: int, explain: str
    ) -> None:
        self._findings.add(
            Finding(
                code=code,
                severity=severity,
                seq=seq,
                expected=None,
                got=None,
                explain=explain,
            )
        )


def _moment(text: str) -> datetime | None:
    try:
        return read_instant(text)
    except ValueError:
        return None
