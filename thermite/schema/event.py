"""Every event that a ledger holds: past facts, one Struct each, closed.

A payload is what happened; `Event` is the envelope around it, and its JSON is the bytes
that the ledger hashes and keeps. The tag `type` is the bare word for the first version of
a payload. Units are in the names; hashes and seeds are lower-case hex; times are RFC 3339
in UTC. Source: the reference page "Contract", Events; judging, 3.8; ledger and signing, 3.2.
Shapes live here; who appends them, and why, this file must not know.
"""

from typing import Annotated, Any, Final, Literal, TypeAlias, cast

import msgspec

from thermite.schema.attempt import (
    AgentFinished,
    AttemptEnded,
    AttemptStarted,
    CandidateRefused,
    CandidateSubmitted,
    Hold,
    HoldResolved,
)
from thermite.schema.command import McpProvider, TrustedKey
from thermite.schema.contract import McpServer, RepoAt
from thermite.schema.goal_rules import GoalRules
from thermite.schema.judging import (
    Block,
    Build,
    CellValues,  # noqa: F401 - had from here, as all of the events are
    ChampionPromoted,
    Check,
    Decision,
    GoalChecked,
    Interval,
    JudgeStarted,
    RigSelftest,
    Run,
    Verdict,
)
from thermite.schema.strict import Strict, Whole

MOST_MONO_NS: Final = 2**63 - 1
"""Largest `mono_ns`: a machine's clock passes 2^53 ns on its 105th day, and a rig may run on."""
MonoNs: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MOST_MONO_NS)]


class LedgerOpened(Strict):
    """Event 1; rig_key: base64 of the raw public key."""

    ledger: str
    rig: str
    rig_key: str
    versions: dict[str, str]
    target: str
    image: str | None
    machine: dict[str, Any]
    previous: None = None


class TrustSet(Strict):
    """Trust has a new version; by: key id of the signer, or `local`."""

    version: Whole
    keys: list[TrustedKey]
    by: str


class KeyRevoked(Strict):
    """A key is not trusted from `since` on."""

    key: str
    since: str


class TrustReset(Strict):
    """The rig's owner replaced the trust by hand."""

    version: Whole
    keys: list[TrustedKey]


class LedgerGap(Strict):
    """Events that a receipt names and that the ledger no longer has."""

    from_: Whole = msgspec.field(name="from")
    to: Whole


class IsolationProbe(Strict, omit_defaults=True):
    """What canaries found at the rig's start.

    passed_over: better levels than the one taken, and in words why each can't be had.
    """

    level: str
    features: list[str]
    gaps: list[str]
    canaries: dict[str, str]
    passed_over: dict[str, str] = msgspec.field(default_factory=dict)


class CommandAccepted(Strict):
    """A signed command takes effect; body is None for `assign_campaign`."""

    sha256: str
    id: str
    type: str
    issuer: str
    keys: list[str]
    body: dict[str, Any] | None


class CommandRefused(Strict):
    """A command file was refused; name: escaped and shortened.

    sha256, size: of the file, sha256 None when it was not read. digest, id and message are
    there when a trusted key signed it, so that its receipt can be made from the ledger.
    """

    sha256: str | None
    size: Whole
    name: str
    code: str
    digest: str | None = None
    id: str | None = None
    message: str | None = None


class RefusalsSuppressed(Strict):
    """So many refusals more since then."""

    count: Whole
    since: str


class ImportCompleted(Strict):
    """A bundle or model file is on the rig; exactly one of repo and model is given."""

    kind: str
    repo: str | None
    model: str | None
    commit: str | None
    sha256: str | None
    bytes: Whole


class AssignmentCreated(Strict, omit_defaults=True):
    """A campaign begins; contract: its bytes in the command; goals: what its kit says of them."""

    contract: msgspec.Raw
    contract_sha256: str
    kit: RepoAt | None
    project: RepoAt
    order_commitment: str
    goals: GoalRules | None = None


class McpServers(Strict, omit_defaults=True):
    """The campaign's MCP servers, also when there are none; providers: where the HTTP ones are."""

    servers: list[McpServer]
    providers: list[McpProvider] = msgspec.field(default_factory=list)


class LocalJob(Strict):
    """`thermite judge` without a command."""

    project: RepoAt
    kit: RepoAt
    champion: RepoAt | None
    cells: list[str]
    nonce: str
    order_commitment: str


class AssignmentPaused(Strict):
    """No new attempt starts."""

    by: str


class AssignmentResumed(Strict):
    """Attempts start again."""

    by: str


class AssignmentEnded(Strict):
    """The campaign is over; gain and interval are the re-anchor's (fractions)."""

    reason: str
    champion: str | None
    gain: float | None
    interval: Interval | None
    order_seed: str


class LaneOpened(Strict):
    """A worker's lane."""

    lane: Whole
    backend: str
    options: dict[str, Any]
    model: str | None
    strategy: str


class ToolCalled(Strict, omit_defaults=True):
    """An agent called an MCP tool; the envelope names its lane.

    kind: of agent; server, tool: escaped and shortened, server empty where the name is no tool's;
    ms: until the answer; outcome: ok, error (the tool's own), refused (outside its grant), limit,
    timeout, unreachable, too_large; bytes: of the whole result; sha256: of one that was cut for
    the agent.
    """

    kind: str
    server: str
    tool: str
    ms: Whole
    outcome: str
    bytes: Whole
    sha256: str | None = None


class BudgetSpent(Strict):
    """amounts: of attempts, wall_s, judge_s, tokens, usd."""

    attempt: Whole | None
    agent: str | None
    amounts: dict[str, float]
    usd_source: str | None = None


class ReviewVote(Strict):
    """One vote on a review goal."""

    attempt: Whole
    goal: str
    voter: str
    vote: Literal["met", "unmet"]
    reason: str


class ReviewResult(Strict):
    """A review goal is decided."""

    attempt: Whole
    goal: str
    votes: Whole
    quorum: Whole
    met: bool


class Steered(Strict):
    """The operator's note for a lane, or for all."""

    text: str
    lane: Whole | None


class Plan(Strict):
    """The planner's directions."""

    directions: list[dict[str, Any]]


class Advice(Strict):
    """Lessons of the teacher pair."""

    lessons: list[dict[str, Any]]


class AuditReport(Strict):
    """The auditor's word on a candidate."""

    attempt: Whole
    result: Literal["pass", "suspicious", "needs_review"]
    findings: list[dict[str, Any]]


class Event(Strict):
    """The envelope: who says it, when, and what led to it. Its subclasses add `data`.

    id: 128-bit hex, ordered by time; at: informative, order is the ledger's; boot, mono_ns:
    boot id and monotonic clock; cause: id of the event before it in the chain of causes;
    command: digest of the command that started the chain.
    """

    id: str
    assignment: str | None
    lane: Whole | None
    actor: str
    at: str
    boot: str
    mono_ns: MonoNs
    cause: str | None
    command: str | None
    data: Any


PAYLOADS: Final[dict[str, type[Strict]]] = {
    "ledger_opened": LedgerOpened,
    "trust_set": TrustSet,
    "key_revoked": KeyRevoked,
    "trust_reset": TrustReset,
    "ledger_gap": LedgerGap,
    "rig_selftest": RigSelftest,
    "isolation_probe": IsolationProbe,
    "command_accepted": CommandAccepted,
    "command_refused": CommandRefused,
    "refusals_suppressed": RefusalsSuppressed,
    "import_completed": ImportCompleted,
    "assignment_created": AssignmentCreated,
    "mcp_servers": McpServers,
    "local_job": LocalJob,
    "assignment_paused": AssignmentPaused,
    "assignment_resumed": AssignmentResumed,
    "assignment_ended": AssignmentEnded,
    "lane_opened": LaneOpened,
    "attempt_started": AttemptStarted,
    "tool_called": ToolCalled,
    "agent_finished": AgentFinished,
    "candidate_submitted": CandidateSubmitted,
    "candidate_refused": CandidateRefused,
    "attempt_ended": AttemptEnded,
    "budget_spent": BudgetSpent,
    "build": Build,
    "judge_started": JudgeStarted,
    "run": Run,
    "check": Check,
    "block": Block,
    "decision": Decision,
    "verdict": Verdict,
    "champion_promoted": ChampionPromoted,
    "goal_checked": GoalChecked,
    "plan": Plan,
    "advice": Advice,
    "audit_report": AuditReport,
    "hold": Hold,
    "hold_resolved": HoldResolved,
    "review_vote": ReviewVote,
    "review_result": ReviewResult,
    "steered": Steered,
}
"""Every tag and the payload it stands for."""

TAG_OF: Final[dict[type[Strict], str]] = {payload: tag for tag, payload in PAYLOADS.items()}

ENVELOPES: Final[dict[str, type[Event]]] = {
    tag: cast(
        "type[Event]",
        msgspec.defstruct(
            f"{payload.__name__}Event",
            [("data", payload)],
            bases=(Event,),
            namespace={"__doc__": payload.__doc__},
            tag=tag,
            tag_field="type",
            frozen=True,
            kw_only=True,
            forbid_unknown_fields=True,
        ),
    )
    for tag, payload in PAYLOADS.items()
}
"""One envelope Struct per type, so that one decode checks tag and payload together."""
