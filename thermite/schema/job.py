"""One job of the judge: what to compare with what, and what is known already."""

from typing import Literal, TypeAlias

from thermite.schema.contract import Contract, RepoAt
from thermite.schema.event import Block, Check, Decision, JudgeStarted, Run
from thermite.schema.strict import Strict

JudgeFact: TypeAlias = JudgeStarted | Run | Check | Block | Decision


class Revision(Strict):
    """A commit and its tree, full ids."""

    commit: str
    tree: str


class Job(Strict):
    """Judge a candidate against a champion, or measure the champion again (re_anchor).

    attempt: None for a re-anchor, whose number is `tries`; k: the index that this try takes
    when its `judge_started` is appended; order_seed: hex; judged_outputs: digest of build
    outputs to the attempt whose verdict answers a duplicate; history: what the ledger holds
    of this try already, in order (not empty after a kill).
    """

    kind: Literal["attempt", "re_anchor", "single"]
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
