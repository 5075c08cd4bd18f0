"""Signed commands: the payload's fields and each type's body.

Source: the design page on ledger and signing, 3.8; the reference page "Contract", Commands.
The envelope around the payload is DSSE; its bytes are opened in `thermite.command`.
"""

import re
from typing import Any, Final, Literal, TypeAlias

import msgspec

from thermite.schema.contract import McpServer
from thermite.schema.strict import Strict

COMMAND_TYPE: Final = "application/vnd.thermite.command.v1+json"
RECEIPT_TYPE: Final = "application/vnd.thermite.receipt.v1+json"
RIG_TYPE: Final = "application/vnd.thermite.rig.v1+json"
MAX_COMMAND_BYTES: Final = 1 << 20
MOST_NOTE: Final = 2000
"""Most characters of a person's note or of a vote's reason (Contract, Commands)."""

CommandType: TypeAlias = Literal[
    "assign_campaign",
    "pause_campaign",
    "resume_campaign",
    "stop_campaign",
    "steer_campaign",
    "resolve_hold",
    "extend_budget",
    "submit_candidate",
    "vote_review",
    "update_trust",
    "revoke_key",
    "checkpoint_now",
]


_SECRET: Final = re.compile(r"https?://[^/]*@|[a-z][a-z0-9+.-]*://[^/@]*:[^/@]*@")
"""A password in an address, and a user of https, which forges take for a token."""


def holds_secret(address: str) -> bool:
    """Return whether an address of git says who asks in a way that must stay secret."""
    return _SECRET.match(address) is not None


class Source(Strict, omit_defaults=True):
    """Where a supervisor fetches an import: a git URL, or a kit that control keeps.

    git: the URL; access: the name of an access to it; control: `kits/<name>`. Exactly one of
    git and control is given (Kit manifest, How a kit reaches a rig).
    """

    git: str | None = None
    access: str | None = None
    control: str | None = None

    def __post_init__(self) -> None:
        """Refuse a source that names no place or two."""
        if (self.git is None) == (self.control is None):
            raise ValueError("a source has either git or control")
        if self.access is not None and self.git is None:
            raise ValueError("access belongs to a git source")
        if self.git is not None and holds_secret(self.git):
            raise ValueError("git holds a user or password: an order is kept, so name an access")


class KitBundle(Strict, tag="kit_bundle", tag_field="kind"):
    """A kit as a git bundle; path is relative to the inbox as senders see it."""

    path: str
    repo: str
    commit: str
    sha256: str | None = None
    source: Source | None = None


class ProjectBundle(Strict, tag="project_bundle", tag_field="kind"):
    """A project as a git bundle."""

    path: str
    repo: str
    commit: str
    sha256: str | None = None
    source: Source | None = None


class ModelFile(Strict, tag="model_file", tag_field="kind"):
    """A model file, by its SHA-256."""

    path: str
    sha256: str
    source: Source | None = None


Import: TypeAlias = KitBundle | ProjectBundle | ModelFile


class McpProvider(Strict):
    """An HTTP MCP server of control's Settings; headers name secrets, they hold none."""

    name: str
    url: str
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class Providers(Strict):
    """What the rig's gateway needs to reach the campaign's MCP servers."""

    mcp: list[McpProvider] = msgspec.field(default_factory=list)


class AssignBody(Strict):
    """`assign_campaign`: the contract's bytes as they are hashed, and what must be imported."""

    contract: msgspec.Raw
    imports: list[Import] = msgspec.field(default_factory=list)
    mcp_servers: list[McpServer] = msgspec.field(default_factory=list)
    providers: Providers = msgspec.field(default_factory=Providers)


class AboutAssignment(Strict):
    """`pause_campaign`, `resume_campaign`."""

    assignment: str


class StopBody(Strict):
    """`stop_campaign`: now ends agents and judge at once, else after the running attempts."""

    assignment: str
    now: bool = False


class SteerBody(Strict):
    """`steer_campaign`: a note for one lane, or for all."""

    assignment: str
    text: str
    lane: int | None = None


class ResolveBody(Strict):
    """`resolve_hold`."""

    assignment: str
    attempt: int
    action: Literal["release", "reject"]


class ExtendBody(Strict):
    """`extend_budget`: new limits, none below the old."""

    assignment: str
    budget: dict[str, float]


class SubmitBody(Strict):
    """`submit_candidate`: a commit for a lane with the backend `human`."""

    assignment: str
    lane: int
    commit: str
    imports: list[Import]


class VoteBody(Strict):
    """`vote_review`."""

    assignment: str
    attempt: int
    goal: str
    vote: Literal["met", "unmet"]
    reason: str


class TrustedKey(Strict):
    """One key of a rig's trust; public: base64 of the 32 raw bytes; times: RFC 3339 or None."""

    id: str
    public: str
    label: str
    roles: list[Literal["root", "command"]]
    types: list[str] | None = None
    from_: str | None = msgspec.field(default=None, name="from")
    until: str | None = None
    revoked_since: str | None = None


class TrustBody(Strict):
    """`update_trust`: the whole next version of the trust."""

    version: int
    keys: list[TrustedKey]


class RevokeBody(Strict):
    """`revoke_key`."""

    key: str
    since: str


class NoBody(Strict):
    """`checkpoint_now`."""


Body: TypeAlias = (
    AssignBody
    | AboutAssignment
    | StopBody
    | SteerBody
    | ResolveBody
    | ExtendBody
    | SubmitBody
    | VoteBody
    | TrustBody
    | RevokeBody
    | NoBody
)

BODY_OF: Final[dict[str, type[Strict]]] = {
    "assign_campaign": AssignBody,
    "pause_campaign": AboutAssignment,
    "resume_campaign": AboutAssignment,
    "stop_campaign": StopBody,
    "steer_campaign": SteerBody,
    "resolve_hold": ResolveBody,
    "extend_budget": ExtendBody,
    "submit_candidate": SubmitBody,
    "vote_review": VoteBody,
    "update_trust": TrustBody,
    "revoke_key": RevokeBody,
    "checkpoint_now": NoBody,
}


class After(Strict):
    """The newest checkpoint that control holds: its size and base64 root."""

    size: int
    root: str


class CommandPayload(Strict):
    """What is signed; all times RFC 3339 in UTC with `Z`."""

    v: Literal[1]
    id: str
    type: CommandType
    rig: str
    ledger: str
    issuer: str
    issued_at: str
    not_before: str
    expires_at: str
    after: After | None
    body: msgspec.Raw


class Inclusion(Strict):
    """A consistency proof between two checkpoint sizes; hashes are base64."""

    from_: int = msgspec.field(name="from")
    to: int
    hashes: list[str]


class ReceiptCommand(Strict):
    """Which command a receipt is about; id is None when the payload could not be read."""

    sha256: str
    id: str | None


Outcome: TypeAlias = Literal["accepted", "refused", "duplicate", "waiting", "finished"]


class Receipt(Strict):
    """A rig's signed answer to one command (ledger and signing, 3.10)."""

    v: Literal[1]
    rig: str
    ledger: str
    receipt_id: str
    command: ReceiptCommand
    outcome: Outcome
    code: str | None
    message: str | None
    warnings: list[str]
    event_seq: int | None
    assignment: str | None
    checkpoint: str | None
    inclusion: list[str] | None
    consistency: Inclusion | None
    at: str | None


class Trust(Strict):
    """Whom a rig trusts, as it says itself: the keys with their rights are no secret."""

    version: int
    keys: list[TrustedKey]


class RigCard(Strict):
    """`outbox/rig.json`: what control must know of a rig.

    Signed by the rig, at each start and when its trust changes; trust: None of an older rig.
    run_s: judge time of one run with its check, seconds, where timed_kit was tested last.
    """

    v: Literal[1]
    name: str
    rig: str
    key: str
    ledger: str
    target: str
    isolation: dict[str, Any]
    grade: str | None
    sees: float | None
    checkpoint: str
    at: str
    trust: Trust | None = None
    timed_kit: str | None = None
    run_s: float | None = None
