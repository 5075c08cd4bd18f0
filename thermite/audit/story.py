"""Who did what, and when: what an audit tells besides its findings.

Source: ledger and signing, 3.7 (what an audit prints) and 3.11 (revocation).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal

from thermite.audit.findings import Findings
from thermite.command.instant import read_instant
from thermite.ledger.checkpoint import SIGNED_AT_ONCE
from thermite.schema import event as e
from thermite.schema.audit import ClockStep, Finding, FindingCode, OpenCoin, RevokedUse

STEP_SECONDS: Final = 1.0
"""Clocks of one machine that drift by more between two events were set, or slept."""
_NS: Final = 1_000_000_000
_TENTH: Final = len("2026-01-31T23:59:59.9")
_SURE_NS: Final = int((STEP_SECONDS - 0.1) * _NS)
"""Most that may pass between two times of the same tenth of a second, and be no step."""
_SIGNED: Final = frozenset(e.PAYLOADS[tag] for tag in SIGNED_AT_ONCE)


class Story:
    """Counts over the events, in order."""

    def __init__(self, findings: Findings) -> None:
        self.first_at: str | None = None
        self.accepted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.commands: list[tuple[int, e.CommandAccepted, str]] = []
        self.revoked_uses: list[RevokedUse] = []
        self.clock_steps: list[ClockStep] = []
        self.must_be_signed = 0
        """The last event whose own transaction must have carried a checkpoint; 0: none."""
        # The types that a story is told by; most events are of others.
        self._telling: Mapping[type, Callable[[int, e.Event, Any], None]] = {
            e.AssignmentCreated: self._begin,
            e.AssignmentEnded: self._end,
            e.AttemptStarted: self._attempt,
            e.CommandAccepted: self._accept,
            e.CommandRefused: self._refuse,
            e.KeyRevoked: self._revoke,
            e.LedgerGap: self._gap,
            e.LocalJob: self._begin,
            e.RefusalsSuppressed: self._suppress,
            e.TrustReset: self._reset_trust,
            e.TrustSet: self._trust,
        }
        self._findings = findings
        self._revoked: dict[str, str] = {}
        self._coins: dict[str, int] = {}
        self._clock: tuple[str | None, str, int] = None, "", 0  # no boot yet; an id may be empty

    @property
    def last_at(self) -> str | None:
        """The time of the last event; None before the first."""
        return None if self.first_at is None else self._clock[1]

    @property
    def open_coins(self) -> list[OpenCoin]:
        """Assignments that run, and so keep their order seed secret."""
        return [OpenCoin(assignment=name, attempts=count) for name, count in self._coins.items()]

    def take_all(self, seqs: Iterable[int], events: Iterable[e.Event | None]) -> None:
        """Read events, each with its number; None: it can't be read."""
        boot, at, mono_ns = self._clock
        tenth, signed = at[:_TENTH], self.must_be_signed
        for seq, event in zip(seqs, events, strict=True):
            if event is None:
                continue
            before, at = at, event.at
            if event.boot != boot:
                self.first_at = at if self.first_at is None else self.first_at
                boot, tenth = event.boot, at[:_TENTH]
            else:
                passed_ns = event.mono_ns - mono_ns
                # As most events: no need to read the times.
                if not (0 <= passed_ns <= _SURE_NS and at.startswith(tenth)):
                    self._look_at_clock(seq, before, at, passed_ns)
                    tenth = at[:_TENTH]
            mono_ns = event.mono_ns
            data = event.data
            kind = type(data)
            if kind in _SIGNED:
                signed = seq
            tell = self._telling.get(kind)
            if tell is not None:
                tell(seq, event, data)
        self._clock, self.must_be_signed = (boot, at, mono_ns), signed

    def _refuse(self, _: int, __: e.Event, data: e.CommandRefused) -> None:
        self.refused[data.code] += 1

    def _suppress(self, _: int, __: e.Event, data: e.RefusalsSuppressed) -> None:
        self.refused["suppressed"] += data.count

    def _reset_trust(self, seq: int, event: e.Event, data: e.TrustReset) -> None:
        self._trust(seq, event, data)
        why = "the rig's owner replaced all trust by hand: the root key was lost, or taken"
        self._add("trust_reset", "finding", seq, why)

    def _gap(self, seq: int, _: e.Event, data: e.LedgerGap) -> None:
        first, last = data.from_, data.to
        lost = f"events {first} to {last} were lost, and the owner went on"
        if last < first:
            lost = f"a sender's checkpoint did not fit before event {first}, and the owner went on"
        self._warn("ledger_gap", seq, lost)

    def _begin(self, _: int, event: e.Event, __: e.AssignmentCreated | e.LocalJob) -> None:
        self._coins.setdefault(event.assignment or "", 0)

    def _attempt(self, _: int, event: e.Event, __: e.AttemptStarted) -> None:
        if event.assignment in self._coins:
            self._coins[event.assignment] += 1

    def _end(self, _: int, event: e.Event, __: e.AssignmentEnded) -> None:
        self._coins.pop(event.assignment or "", None)

    def _look_at_clock(self, seq: int, before: str, at: str, passed_ns: int) -> None:
        earlier, now = _moment(before), _moment(at)
        if earlier is None or now is None:
            return
        step = (now - earlier).total_seconds() - passed_ns / _NS
        if abs(step) > STEP_SECONDS:
            self.clock_steps.append(ClockStep(seq=seq, seconds=round(step, 3)))

    def _accept(self, seq: int, event: e.Event, data: e.CommandAccepted) -> None:
        self.accepted[data.issuer] += 1
        self.commands.append((seq, data, event.at))
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

    def _revoke(self, _: int, __: e.Event, data: e.KeyRevoked) -> None:
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

    def _trust(self, _: int, __: e.Event, data: e.TrustSet | e.TrustReset) -> None:
        self._revoked = {
            key.id: key.revoked_since for key in data.keys if key.revoked_since is not None
        }

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
