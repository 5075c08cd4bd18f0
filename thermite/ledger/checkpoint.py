"""When a rig signs where its ledger stands.

A note's text and signature are `thermite.command.note`; here is the rule of ledger and
signing, 3.4: at 1,000 events since the last note, after 60 s when there are new events,
and in the transaction of each event of `SIGNED_AT_ONCE`. A ledger that follows it never
has more than 1,000 events between two notes, and an audit asks for that.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from thermite.command.instant import read_instant, write_instant
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


_SECONDS: Final = 19
"""Characters of an RFC 3339 time down to its second: such texts sort as the times do."""


class Fresh(NamedTuple):
    """The minute in which a note is fresh, as texts to the second: from `since`, before `until`."""

    since: str
    until: str


def minute_after(noted_at: datetime) -> Fresh:
    """Return the minute in which a note of that time is fresh."""
    until = noted_at + timedelta(seconds=MOST_SECONDS)
    return Fresh(write_instant(noted_at)[:_SECONDS], write_instant(until)[:_SECONDS])


def is_due(kind: str, at: str, fresh: Fresh) -> bool:
    """Return whether an event must be signed in its own transaction.

    The event's own time decides, so that an audit can tell from the file whether the rule
    was kept; texts are compared, since every append pays for it.

    Args:
        kind: the event's type.
        at: the event's time, RFC 3339; before the newest note's, it makes a note due.
        fresh: the minute in which the newest note is fresh.
    """
    return kind in SIGNED_AT_ONCE or not fresh.since <= at[:_SECONDS] < fresh.until


def are_due(kinds: Iterable[str], times: Sequence[str], fresh: Fresh) -> bool:
    """Return whether one of some events is due, by their types and their times."""
    first, last = min(times)[:_SECONDS], max(times)[:_SECONDS]
    return not (SIGNED_AT_ONCE.isdisjoint(kinds) and fresh.since <= first <= last < fresh.until)


def is_old(noted_at: datetime, now: str) -> bool:
    """Return whether the newest note is 60 s old, or lies in the future.

    Raises:
        LedgerError: `now` is no RFC 3339 time in UTC; a bug of the caller.
    """
    seconds = (read_instant(sure_time(now)) - noted_at).total_seconds()
    return not 0 <= seconds < MOST_SECONDS


def sure_time(now: str) -> str:
    """Return what the clock gave, which a note may hold.

    Raises:
        LedgerError: it is no RFC 3339 time in UTC; a bug of the caller.
    """
    try:
        read_instant(now)
    except ValueError as error:
        raise LedgerError(f"the ledger's clock gives no time: {error}") from None
    return now
