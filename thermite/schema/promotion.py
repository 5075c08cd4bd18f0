"""One promotion with its evidence, in one file that can be checked on any machine.

Source: ledger and signing, 3.14 (`thermite export PROMOTION`).
"""

from typing import Final, Literal

from thermite.schema.contract import RepoAt
from thermite.schema.judging import Interval
from thermite.schema.strict import Strict

FORMAT: Final = "thermite.promotion/1"
MOST_FILE_BYTES: Final = 64 << 20
"""Largest promotion file."""


class Made(Strict):
    """Which version wrote a file, and when; for readers only."""

    by: str
    at: str


class Tree(Strict):
    """A commit and the git tree that was judged."""

    commit: str
    tree: str


class CountedBlocks(Strict):
    """How many blocks counted in each stage."""

    screen: int
    confirm: int


class Summary(Strict):
    """What a promotion claims; each value is recomputed from the carried events.

    gain: a fraction; isolation, grade: of the rig, grade null without a selftest.
    """

    assignment: str
    attempt: int
    k: int
    candidate: Tree
    champion: Tree
    project: RepoAt
    kit: RepoAt | None
    contract_sha256: str
    metric: str
    direction: str
    cells: list[str]
    held_out_cells: list[str]
    blocks: CountedBlocks
    lnE: float  # noqa: N815 (the document's own name)
    gain: float
    interval: Interval
    isolation: str
    grade: str | None


class CarriedEvent(Strict):
    """One event: its number and its exact text."""

    seq: int
    body: str


class PromotionFile(Strict):
    """The whole file; rig_key and hashes are base64, checkpoint a signed note.

    proof: one Merkle proof for all events; command: the signed envelope, base64, or null;
    patch: from champion to candidate, for reading only, or null.
    """

    format: Literal["thermite.promotion/1"]
    made: Made
    summary: Summary
    rig_key: str
    checkpoint: str
    events: list[CarriedEvent]
    proof: list[str]
    command: str | None
    patch: str | None
