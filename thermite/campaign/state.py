"""The state that a ledger's events mean.

`State` is filled by `thermite.campaign.fold.fold` alone, event by event, always from event 1.
Readers take it as it is and change nothing.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from thermite.schema.command import McpProvider, TrustedKey
from thermite.schema.contract import Contract, McpServer, RepoAt
from thermite.schema.event import (
    AttemptStarted,
    ChampionPromoted,
    Decision,
    GoalChecked,
    IsolationProbe,
    LaneOpened,
    LedgerOpened,
    ReviewVote,
    RigSelftest,
    Verdict,
)
from thermite.schema.goal_rules import GoalRules
from thermite.schema.job import JudgeFact

AttemptStatus: TypeAlias = Literal[
    "working", "finished", "submitted", "building", "judging", "judged", "held", "promoted", "ended"
]
AssignmentStatus: TypeAlias = Literal["running", "paused", "ended"]


@dataclass
class Seen:
    """An accepted command: where it stands and what it started."""

    seq: int
    id: str
    issuer: str
    type: str
    digest: str
    assignment: str | None


@dataclass
class Attempt:
    """One candidate from proposal to verdict.

    tries: how often the judge took it from the queue; facts: what the ledger holds of the
    present try; outputs: digest of the candidate's build outputs; checked: what came of each
    goal in each pass of this try; votes and reviewed: of review goals; refused: why no candidate
    was made of it; hold_reasons and
    held_at, RFC 3339: of the hold; spendings: events about what was spent on it; result: set at
    the end.
    """

    started: AttemptStarted
    lane: int
    status: AttemptStatus = "working"
    commit: str | None = None
    tree: str | None = None
    paths: list[str] = field(default_factory=list)
    tries: int = 0
    facts: list[JudgeFact] = field(default_factory=list)
    outputs: str | None = None
    checked: dict[tuple[str, str], GoalChecked] = field(default_factory=dict)
    votes: dict[str, list[ReviewVote]] = field(default_factory=dict)
    reviewed: dict[str, bool] = field(default_factory=dict)
    refused: str = ""
    verdict: Verdict | None = None
    hold: str | None = None
    hold_reasons: list[str] = field(default_factory=list)
    held_at: str | None = None
    released: bool = False
    rejected: bool = False
    infra_returns: int = 0
    noisy_returns: int = 0
    interrupted: int = 0
    held_out_failed: bool = False
    spendings: int = 0
    result: str | None = None


@dataclass
class ReAnchor:
    """One measurement of the champion against the starting commit; decision ends it."""

    number: int
    facts: list[JudgeFact] = field(default_factory=list)
    decision: Decision | None = None
    promotions: int = 0


@dataclass
class Assignment:
    """One accepted campaign.

    used_k: how many indices of the error budget are spent; answered: tree id, or digest of
    build outputs, to the attempt whose verdict answers a duplicate; spent: sums of amounts;
    nonce: of a local job, in the place of a command's digest.
    """

    id: str
    created_seq: int
    command: str | None
    contract: Contract
    contract_sha256: str
    kit: RepoAt | None
    project: RepoAt
    champion: str
    status: AssignmentStatus = "running"
    goals: GoalRules | None = None
    mcp_servers: list[McpServer] | None = None
    mcp_providers: list[McpProvider] = field(default_factory=list)
    lanes: dict[int, LaneOpened] = field(default_factory=dict)
    attempts: dict[int, Attempt] = field(default_factory=dict)
    promotions: list[ChampionPromoted] = field(default_factory=list)
    re_anchors: list[ReAnchor] = field(default_factory=list)
    used_k: int = 0
    answered: dict[str, int] = field(default_factory=dict)
    spent: dict[str, float] = field(default_factory=dict)
    steers: list[tuple[int | None, str]] = field(default_factory=list)
    end_reason: str | None = None
    stop_wanted: Literal["now", "after"] | None = None
    gain: float | None = None
    interval: tuple[float | None, float | None] | None = None
    selftested: bool = False
    nonce: str | None = None
    last_event: str | None = None

    def open_attempt(self, lane: int) -> Attempt | None:
        """The lane's attempt that has not ended and is not held, or None."""
        for attempt in reversed(self.attempts.values()):
            if attempt.lane == lane and attempt.status not in ("ended", "held"):
                return attempt
        return None


@dataclass
class State:
    """Everything that a ledger's events mean, up to event `seq`."""

    seq: int = 0
    opened: LedgerOpened | None = None
    trust: list[TrustedKey] = field(default_factory=list)
    trust_version: int = 0
    trust_was_reset: bool = False
    commands: dict[str, Seen] = field(default_factory=dict)
    command_ids: dict[tuple[str, str], str] = field(default_factory=dict)
    imported: set[tuple[str, str, str]] = field(default_factory=set)
    assignments: dict[str, Assignment] = field(default_factory=dict)
    isolation: IsolationProbe | None = None
    selftest: RigSelftest | None = None
    full_selftest: RigSelftest | None = None
    full_selftest_boot: str | None = None
    refused: int = 0
    local_k: int = 0
    ledger_locked: bool = False
    last_event: str | None = None

    @property
    def sees(self) -> float | None:
        """The smallest gain that this rig sees, a fraction: its newest full selftest's word."""
        return None if self.full_selftest is None else self.full_selftest.sees

    def is_known_as(self, boot: str, runs_on: str) -> bool:
        """Return whether a full selftest saw this machine as it is: since this boot, on these.

        Args:
            boot: the kernel's id of the boot; runs_on: kernel and driver.

        Source: judging, 3.7.
        """
        full = self.full_selftest
        if full is None:
            return False
        return (self.full_selftest_boot, full.runs_on) == (boot, runs_on)

    @property
    def unfit(self) -> Literal["biased", "insensitive"] | None:
        """Why this rig's selftest refuses assignments, None while it does not."""
        if self.selftest is not None and self.selftest.biased:
            return "biased"
        full = self.full_selftest
        return "insensitive" if full is not None and full.insensitive else None
