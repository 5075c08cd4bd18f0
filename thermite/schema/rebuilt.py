"""What came out when all that is derived from a ledger was made anew and compared."""

import msgspec

from thermite.schema.strict import Strict

MOST_MISMATCHES = 100
"""How many values are listed; the rest are counted."""


class Mismatch(Strict):
    """A derived value that the events do not lead to.

    file: `views.db` or `trust.json`; place: its table or part; key: the row, as
    `seq=163`, or empty.
    """

    file: str
    place: str
    key: str
    stands: str
    events_say: str


class Rebuilt(Strict):
    """The whole result; compared: the files that were there; rows: made anew, of views.db."""

    compared: list[str] = msgspec.field(default_factory=list)
    rows: int = 0
    mismatches: list[Mismatch] = msgspec.field(default_factory=list)
    unlisted: int = 0
