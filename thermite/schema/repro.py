"""What came out when a promotion's two commits were judged again somewhere else."""

from thermite.schema.contract import RepoAt
from thermite.schema.judging import Interval
from thermite.schema.strict import Strict


class Repro(Strict):
    """The verdict of this machine; gain and interval: fractions, None where it gave none.

    kit: what judged here; problem: why nothing was judged, or None.
    """

    verdict: str | None = None
    gain: float | None = None
    interval: Interval | None = None
    isolation: str | None = None
    kit: RepoAt | None = None
    problem: str | None = None
