"""What the judge and the selftest write into the ledger: the payloads of judging events.

Units are in the names; t_ns and the like are integers, what a check printed stays decimal
text, so that a decision can be recomputed to the last digit. Source: judging, 3.8.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec

from thermite.schema.contract import RepoAt
from thermite.schema.stage import IsolationRecord, RunRecord
from thermite.schema.strict import Strict, Whole
from thermite.schema.verdict import Action, Arm, JudgeStage, VerdictKind

Interval: TypeAlias = tuple[float | None, float | None]
"""Both ends as fractions; None: no bound was found."""


STARTUP_SHARE_OF: Final = "startup_share of "
"""Stands before a cell in the figures of a selftest: its share of start-up, where it is large."""
RUN_S_OF: Final = "run_s of "
"""Stands before such a cell too: the median of its runs, seconds."""


JUDGED_RUN_S: Final = "judged_run_s"
"""Among those figures: judge time of one run with reset and check, seconds, on the rig's clock."""


class RigSelftest(Strict):
    """A/A blocks of a kit; figures: robust_sd, order_effect, discard_share and so on.

    runs_on: kernel and driver of then, None where an older rig did not say.
    """

    mode: Literal["short", "full"]
    kit: RepoAt
    nonce: str
    order_seed: str
    blocks: list[float]
    figures: dict[str, float | None]
    grade: str
    sees: float | None
    biased: bool
    insensitive: bool | None
    runs_on: str | None = None


class Build(Strict):
    """One arm was built, or found in the store; outcome: ok or the failure's name."""

    attempt: Whole | None
    tries: Whole
    arm: Arm
    key: str
    tree: str
    outputs_digest: str | None
    outcome: str
    reason: str | None
    seconds: float
    cached: bool
    isolation: IsolationRecord | None = None


class JudgeStarted(Strict):
    """Both builds and the warm-up stand; params: every parameter of the rule, filled in."""

    attempt: Whole
    tries: Whole
    k: Whole
    alpha_k: float
    candidate: str
    champion: str
    contract_sha256: str
    kit_commit: str
    rule: str
    params: dict[str, Any]
    isolation: str
    agents_during_timing: str
    card: str | None = None


class Run(Strict):
    """One execution of a build on a cell; block is None for a warm-up run.

    outcome: ok, or the failure's name of `schema.verdict`; flags: e.g. steal, suspended.
    """

    attempt: Whole | None
    tries: Whole
    stage: JudgeStage
    block: Whole | None
    cell: str
    arm: Arm
    position: Whole
    record: RunRecord | None
    flags: list[str]
    isolation: IsolationRecord | None
    outcome: str
    reason: str | None
    telemetry: str | None = None


class Check(Strict):
    """The kit's check of one run; fields: the numbers it printed, as decimal text."""

    attempt: Whole | None
    tries: Whole
    stage: JudgeStage
    block: Whole | None
    cell: str
    arm: Arm
    passed: bool = msgspec.field(name="pass")
    fields: dict[str, str]
    reasons: list[str]


class Block(Strict):
    """One block: the log-ratio of each cell and their weighted mean, or why it was dropped."""

    attempt: Whole | None
    tries: Whole
    stage: JudgeStage
    block: Whole
    d: dict[str, float]
    D: float | None
    dropped: str | None

    @property
    def drops(self) -> list[str]:
        """Each reason why it was dropped, without what `infra: …` says more; none: it counts."""
        return [] if self.dropped is None else self.dropped.split(":")[0].split(", ")


def drops_in_words(blocks: Sequence[Block]) -> str:
    """Return how many of some blocks were dropped, and for what."""
    dropped = [block.drops for block in blocks if block.drops]
    why = ", ".join(sorted({reason for reasons in dropped for reason in reasons}))
    return f"{len(dropped)} of {len(blocks)} blocks were disturbed by the machine ({why})"


class Decision(Strict):
    """What the rule said after a counted block; guards: name to log-evidence."""

    attempt: Whole | None
    tries: Whole
    stage: JudgeStage
    n: Whole
    lnE: float
    lnE_futility: float | None
    T: float
    se: float | None
    lcb: float | None
    ucb: float | None
    guards: dict[str, float]
    rule: str
    action: Action
    result: str | None = None


class CellValues(Strict):
    """One metric in one cell: medians of both arms over confirm (or single), and their ratio."""

    candidate: float | None
    champion: float | None
    ratio: float | None


class Verdict(Strict):
    """The judge's word on one attempt; gain and interval are fractions."""

    attempt: Whole
    tries: Whole
    verdict: VerdictKind
    reasons: list[str]
    cells: dict[str, dict[str, CellValues]]
    gain: float | None
    interval: Interval | None
    marks: list[str]
    notes: list[str]


class ChampionPromoted(Strict):
    """The champion moves; previous: the commit it was measured against."""

    attempt: Whole
    commit: str
    previous: str
    gain: float
    interval: Interval
    marks: list[str]


class GoalChecked(Strict):
    """One goal was verified."""

    attempt: Whole
    tries: Whole
    goal: str
    passed: Literal["visible", "hidden"] = msgspec.field(name="pass")
    met: bool
    reasons: list[str]
