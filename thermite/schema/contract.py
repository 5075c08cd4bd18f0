"""The contract: what a campaign wants. Shapes and defaults; reading one is `contract_text`.

Source: the reference page "Contract". Fractions are plain (0.03 is 3 %).
"""

from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta

from thermite.schema.strict import Strict

Direction: TypeAlias = Literal["max", "min"]
CampaignKind: TypeAlias = Literal["hill_climb", "goal", "research"]
AgentKind: TypeAlias = Literal["workers", "planner", "advisors"]
Name: TypeAlias = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9._-]{0,63}$")]
CommitText: TypeAlias = Annotated[str, Meta(min_length=1)]
Sha256Text: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
NotEmpty: TypeAlias = Annotated[str, Meta(min_length=1)]
Above0: TypeAlias = Annotated[float, Meta(gt=0)]
AtLeastOne: TypeAlias = Annotated[int, Meta(ge=1)]
Blocks: TypeAlias = Annotated[int, Meta(ge=1, le=10_000)]
Loss: TypeAlias = Annotated[float, Meta(ge=0, lt=1)]
Chance: TypeAlias = Annotated[float, Meta(gt=0, lt=1)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]
WantedIsolation: TypeAlias = Literal["protected", "users", "users+namespaces", "any"]

CPU_MIN_EFFECT = 0.03
GPU_MIN_EFFECT = 0.005
"""Default objective.min_effect by target (judging, 3.3)."""


class RepoAt(Strict):
    """A repository id and a full commit id."""

    repo: Name
    commit: CommitText


class Project(Strict):
    """The project that is worked on, and the kit that judges it."""

    repo: Name
    commit: CommitText
    kit: RepoAt | None = None
    editable: Annotated[list[NotEmpty], Meta(min_length=1)] = msgspec.field(
        default_factory=lambda: ["**"]
    )


class Primary(Strict):
    """The metric that is improved."""

    metric: NotEmpty
    direction: Direction = "max"


class Objective(Strict):
    """What is improved and from which gain on; weights by cell, equal when absent."""

    primary: Primary
    min_effect: Above0 | None = None
    weights: dict[str, Above0] | None = None
    secondary: list[Primary] = msgspec.field(default_factory=list)


class Guard(Strict):
    """A metric that must not get worse by more than allowed_loss (a fraction)."""

    metric: NotEmpty
    direction: Direction = "max"
    allowed_loss: Loss = 0.01
    cells: Annotated[list[str], Meta(min_length=1)] | None = None
    per_cell: bool = False


class HardConstraint(Strict):
    """A bound that every run of the candidate keeps."""

    metric: NotEmpty
    min: float | None = None
    max: float | None = None
    cells: Annotated[list[str], Meta(min_length=1)] | None = None


class CodeGoal(Strict, tag="code", tag_field="type"):
    """A goal that a verifier of the kit checks."""

    verifier: NotEmpty


class ThresholdGoal(Strict, tag="metric_threshold", tag_field="type"):
    """A goal that a metric reaches a bound in each of the cells."""

    metric: NotEmpty
    cells: Annotated[list[str], Meta(min_length=1)]
    min: Above0 | None = None
    max: Above0 | None = None
    runs: Annotated[int, Meta(ge=10, le=1000)] = 20


class ReviewGoal(Strict, tag="review", tag_field="type"):
    """A goal that people or a panel vote on."""

    question: NotEmpty
    quorum: AtLeastOne


class Goal(Strict):
    """One goal of a goal campaign."""

    id: NotEmpty
    title: str
    verify: CodeGoal | ThresholdGoal | ReviewGoal
    weight: Above0 = 1.0


class McpServer(Strict):
    """An MCP server by its name in Settings, and which agents get which of its tools."""

    name: Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9-]{0,63}$")]
    agents: Annotated[list[AgentKind], Meta(min_length=1)]
    tools: dict[AgentKind, Annotated[list[str], Meta(min_length=1)]] | None = None


class Workers(Strict):
    """The backend of the lanes' workers; options belong to the backend."""

    backend: NotEmpty
    lanes: AtLeastOne = 1
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    model: str | None = None


class Role(Strict):
    """A planner or advisor: backend `off` is none."""

    backend: NotEmpty = "off"
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    model: str | None = None


class Advisors(Strict):
    """Advisors of a campaign."""

    teachers: Role = msgspec.field(default_factory=Role)
    auditor: Role = msgspec.field(default_factory=lambda: Role(backend="rules"))
    panel: Role = msgspec.field(default_factory=Role)


class Agents(Strict):
    """Who works on the campaign."""

    workers: Workers = msgspec.field(default_factory=lambda: Workers(backend="auto"))
    planner: Role = msgspec.field(default_factory=lambda: Role(backend="rules"))
    advisors: Advisors = msgspec.field(default_factory=Advisors)


class Budget(Strict):
    """The first limit reached ends the campaign with its name; None is no limit.

    attempts: a number; wall_s, judge_s: seconds; usd: dollars; candidate_mib: MiB of one tree.
    """

    attempts: AtLeastOne = 50
    wall_s: Above0 | None = None
    judge_s: Above0 | None = None
    tokens: AtLeastOne | None = None
    usd: Above0 | None = None
    candidate_mib: AtLeastOne = 64


LIMITS: Final = tuple(field.name for field in msgspec.structs.fields(Budget))
"""The limits of a budget, by their names."""
WHOLE_LIMITS: Final = frozenset({"attempts", "tokens", "candidate_mib"})
"""Those that are counted in whole numbers."""


class Stop(Strict):
    """Ends the campaign early: total gain (fraction), goals all met, attempts without promotion."""

    gain: Above0 | None = None
    goals: bool = False
    stale_attempts: AtLeastOne | None = None


RuleName: TypeAlias = Literal["signflip-1", "signflip-2"]
"""Versions of the rule: 2 holds `suspect_gain` against each cell, 1 against the whole only."""


class Judging(Strict):
    """The constants of the rule (judging, 3.3), with their defaults.

    max_discard_share: None for a fifth in a campaign, and nearly all where a person waits.
    """

    held_out_weight: Share = 0.5
    held_out_allowed_loss: Loss = 0.005
    cell_allowed_loss: Loss | None = 0.03
    guard_alpha: Chance = 0.05
    alpha_campaign: Chance = 0.01
    alpha_horizon: AtLeastOne = 200
    screen_alpha: Chance = 0.02
    futility_beta: Chance = 0.05
    confirm_beta: Chance = 0.01
    min_blocks: Blocks = 5
    max_blocks: Blocks = 30
    confirm_min_blocks: Blocks = 10
    confirm_max_blocks: Blocks = 40
    warmup_runs: Annotated[int, Meta(ge=0)] = 1
    settle_ms: Annotated[int, Meta(ge=0)] = 20
    reset: Literal["spin", "kernel"] | None = None
    max_discard_share: Share | None = None
    suspect_gain: Annotated[float, Meta(gt=1)] = 10.0
    hold_timeout_s: AtLeastOne = 604800
    startup_share_warn: Share = 0.02
    startup_share_max: Share = 0.2
    infra_retries: Literal[0, 1] = 1
    max_judge_s: Above0 | None = None
    rule: RuleName = "signflip-2"

    @property
    def most_discarded(self) -> float:
        """The share of a try's blocks that the machine may disturb in a campaign."""
        return 0.2 if self.max_discard_share is None else self.max_discard_share


class Contract(Strict):
    """A completed contract: project.commit and project.kit hold full ids."""

    schema_version: Literal[1]
    name: Name
    campaign: CampaignKind
    task: NotEmpty
    project: Project
    cells: list[str] = msgspec.field(default_factory=list)
    held_out_cells: list[str] = msgspec.field(default_factory=list)
    objective: Objective | None = None
    guards: list[Guard] = msgspec.field(default_factory=list)
    hard_constraints: list[HardConstraint] = msgspec.field(default_factory=list)
    monitor_only: list[Any] = msgspec.field(default_factory=list)
    goals: list[Goal] = msgspec.field(default_factory=list)
    models: list[Sha256Text] = msgspec.field(default_factory=list)
    mcp_servers: Annotated[list[McpServer], Meta(max_length=20)] | None = None
    agents: Agents = msgspec.field(default_factory=Agents)
    budget: Budget = msgspec.field(default_factory=Budget)
    stop: Stop = msgspec.field(default_factory=Stop)
    isolation: WantedIsolation = "protected"
    judging: Judging = msgspec.field(default_factory=Judging)
