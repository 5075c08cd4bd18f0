"""What re-judging a ledger found: recorded decisions beside what its runs lead to.

Source: the design page on judging, 3.8.
"""

import msgspec

from thermite.schema.strict import Strict


class Difference(Strict):
    """Something recorded that does not follow from the runs; what: block, verdict and so on."""

    seq: int
    what: str
    attempt: int | None
    recorded: str
    recomputed: str


class Otherwise(Strict):
    """What another rule would have decided on the blocks that were run."""

    assignment: str
    attempt: int
    recorded: str
    otherwise: str


class Rejudged(Strict):
    """The whole result: how much was recomputed, what differs, what another rule would say."""

    runs: int = 0
    blocks: int = 0
    decisions: int = 0
    verdicts: int = 0
    goals: int = 0
    coins: int = 0
    differences: list[Difference] = msgspec.field(default_factory=list)
    otherwise: list[Otherwise] = msgspec.field(default_factory=list)
    unlisted: int = 0
