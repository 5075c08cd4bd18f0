"""When a rig signs where its ledger stands.

A note's text and signature are `thermite.command.note`; here is the rule of ledger and
signing, 3.4: at 1,000 events since the last note, after 60 s when there are new events,
and in the transaction of each event of `SIGNED_AT_ONCE`. A ledger that follows it never
has more than 1,000 events between two notes, and an audit asks for that.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from thermite.command.instant import read_instant
from thermite.errors import LedgerError

MOST_BETWEEN: Final = 1000
"""Most events between two checkpoints."""
MOST_SECONDS: Final = 60
"""Longest time, s, that new events wait for a checkpoint while events are appended."""
SIGNED_AT_ONCE: Final = frozenset(
    {
        "ledger_opened",
        "ledger_gap",
        "command_accepted",
        "command_refused",
        "refusals_suppressed",
        "champion_promoted",
        "assignment_ended",
        "trust_set",
        "key_revoked",
        "trust_reset",
    }
)
"""Event types whose transaction carries a checkpoint: a command's outcome, a promotion, the
end of an assignment, a change of trust, and the beginning or a loss of the ledger itself."""


def is_due(types: Iterable[str], noted_at: datetime, now: str) -> bool:
    """Return whether a group of events must be signed in its own transaction.

    Args:
        types: the group's event types.
        noted_at: time of the newest note.
        now: time of the group, RFC 3339; a clock that went back makes a note due.

    Raises:
        LedgerError: `now` is no time; a bug of the caller.
    """
    return is_old(noted_at, now) or not SIGNED_AT_ONCE.isdisjoint(types)


def is_old(noted_at: datetime, now: str) -> bool:
    """Return whether the newest note is 60 s old, or lies in the future.

    Raises:
        LedgerError: `now` is no RFC 3339 time in UTC; a bug of the caller.
    """
    try:
        seconds = (read_instant(now) - noted_at).total_seconds()
    except ValueError as error:
        raise LedgerError(f"the ledger's clock gives no time: {error}") from None
    return not 0 <= seconds < MOST_SECONDS
