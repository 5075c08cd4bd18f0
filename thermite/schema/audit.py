"""What an audit of a ledger found: values, so that all of it is seen at once.

Source: ledger and signing, 3.4 (findings) and 3.7 (what an audit prints).
"""

from typing import Final, Literal, TypeAlias

import msgspec

from thermite.schema.strict import Strict

FindingCode: TypeAlias = Literal[
    "body_hash",
    "seq_gap",
    "column_mismatch",
    "event_unreadable",
    "unknown_type",
    "opening_unreadable",
    "illegal_transition",
    "history_unread",
    "checkpoint_unreadable",
    "checkpoint_signature",
    "checkpoint_root",
    "checkpoint_head",
    "checkpoint_gap",
    "checkpoints_unread",
    "shorter_than_checkpoint",
    "unsigned_tail",
    "stale_head",
    "schema_changed",
    "newer_layout",
    "damaged_file",
    "no_external_checkpoint",
    "external_unusable",
    "external_mismatch",
    "fork",
    "key_not_trusted",
    "command_of_revoked_key",
    "trust_reset",
    "ledger_gap",
]
"""Every kind of finding; docs/reference/audit.md explains each."""

MOST_PER_CODE: Final = 100
"""How many findings of one code are listed; the rest are counted."""


class Finding(Strict, omit_defaults=True):
    """One thing that is not as it must be, and where.

    severity: `finding` fails an audit, `warning` is for the reader; seq: the event it is
    about, or size: the checkpoint; expected, got: the values that differ, as text; follows:
    the finding that this one is a consequence of, e.g. `body_hash at event 17`.
    """

    code: FindingCode
    severity: Literal["finding", "warning"]
    explain: str
    expected: str | None
    got: str | None
    seq: int | None = None
    size: int | None = None
    follows: str | None = None


class Tail(Strict):
    """How many events no external checkpoint covered when a command was accepted."""

    seq: int
    command: str
    events: int


class RevokedUse(Strict):
    """A command that was accepted from a key before it was revoked, within the time it names."""

    seq: int
    key: str
    since: str


class ClockStep(Strict):
    """Where wall time and monotonic time moved apart by more than a second, s; plus is ahead."""

    seq: int
    seconds: float


class OpenCoin(Strict):
    """An assignment whose order seed is secret yet; attempts: how many it has started."""

    assignment: str
    attempts: int


class Audit(Strict):
    """The whole result of one audit.

    first_at, last_at: times of the first and last event; head, root: base64, of all events;
    key_pinned: the auditor named the rig's key, else it is the ledger's own word;
    checkpoints: how many, and how many of them are valid; newest_external: the largest size
    of a checkpoint from outside that fits; unwitnessed: events after it; accepted: commands
    by key; refused: by code; unread: events of unknown types; unlisted: findings by code
    beyond the first 100.
    """

    ledger: str | None
    rig: str | None
    rig_key: str | None
    key_pinned: bool
    events: int
    first_at: str | None
    last_at: str | None
    head: str
    root: str
    checkpoints: int
    checkpoints_valid: int
    newest_checkpoint: int | None
    newest_external: int | None
    unwitnessed: int
    tails: list[Tail] = msgspec.field(default_factory=list)
    accepted: dict[str, int] = msgspec.field(default_factory=dict)
    refused: dict[str, int] = msgspec.field(default_factory=dict)
    revoked_uses: list[RevokedUse] = msgspec.field(default_factory=list)
    clock_steps: list[ClockStep] = msgspec.field(default_factory=list)
    open_coins: list[OpenCoin] = msgspec.field(default_factory=list)
    unread: dict[str, int] = msgspec.field(default_factory=dict)
    findings: list[Finding] = msgspec.field(default_factory=list)
    unlisted: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def fails(self) -> bool:
        """Whether any finding is more than a warning."""
        return any(finding.severity == "finding" for finding in self.findings)


class EventProof(Strict):
    """That one event is in a ledger that a checkpoint signs; hashes are base64.

    leaf: SHA-256 of a zero byte and the event's body; inclusion: RFC 6962 audit path;
    checkpoint: the signed note, whose size and root it leads to.
    """

    seq: int
    leaf: str
    inclusion: list[str]
    size: int
    checkpoint: str
