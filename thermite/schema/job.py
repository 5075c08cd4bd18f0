"""One job of the judge: what to compare with what, and what is known already."""

from typing import Literal, TypeAlias

from thermite.schema.contract import Contract, RepoAt
from thermite.schema.event import (
    Block,
    Check,
    Decision,
    GoalChecked,
    JudgeStarted,
    Run,
    Verdict,
)
from thermite.schema.strict import Strict

JudgeFact: TypeAlias = JudgeStarted | Run | Check | Block | Decision | GoalChecked
JobKind: TypeAlias = Literal["attempt", "goals", "re_anchor", "single"]


class Revision(Strict):
    """A commit and its tree, full ids."""

    commit: str
    tree: str


class Job(Strict):
    """Judge a candidate against a champion, verify its goals, or measure the champion again.

    attempt: None for a re-anchor, whose number is `tries`; k: the index that this try takes
    when its `judge_started` is appended; order_seed: hex; judged_outputs: digest of build
    outputs to the attempt whose verdict answers a duplicate; history: what the ledger holds
    of this try already, in order (not empty after a kill); interrupted: unfinished blocks of
    earlier tries; released: a person released the hold in which the history ends;
    order_effect: what the rig's newest selftest found, a log-ratio.
    """

    kind: JobKind
    assignment: str
    attempt: int | None
    tries: int
    candidate: Revision
    champion: Revision | None
    k: int
    order_seed: str
    contract: Contract
    contract_sha256: str
    kit: RepoAt
    judged_outputs: dict[str, int]
    history: list[JudgeFact]
    interrupted: int = 0
    released: bool = False
    order_effect: float = 0.0


class Held(Strict):
    """A promotion that waits for a person: reason is carry_over or suspect_gain.

    promotion: the verdict that a release leads to. A job with the same history and
    `released` returns it without running anything.
    """

    attempt: int
    tries: int
    reason: str
    promotion: Verdict
