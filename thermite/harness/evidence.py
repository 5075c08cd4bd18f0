"""What a rig goes on from must follow from its runs.

A ledger whose chain is whole may still hold a decision that its runs don't lead to: a fault of
ours, or a rig that lied. Campaigns that have not ended are judged again before they go on, from
runs and checks alone; those that have ended are left to an audit, since nothing builds on them.
"""

from collections.abc import Iterator
from pathlib import Path

from thermite.audit.rejudge import rejudged
from thermite.campaign.state import State
from thermite.errors import LedgerError
from thermite.ledger.replay import recorded
from thermite.schema.event import Event
from thermite.schema.rejudged import Difference


def check_evidence(state: State, ledger: Path) -> None:
    """Refuse to go on from a campaign of which something does not follow from its runs.

    Args:
        state: what the ledger's events mean.

    Raises:
        LedgerError: with the first event that does not, and what was made of its runs.
    """
    going_on = {a.id for a in state.assignments.values() if a.status != "ended" and a.nonce is None}
    if not going_on:
        return
    found = rejudged(_of(ledger, going_on)).differences
    if found:
        raise LedgerError(f"{ledger}: {_told(found[0], len(found))}")


def _of(ledger: Path, assignments: set[str]) -> Iterator[tuple[int, Event]]:
    """Yield the events of these assignments, and those that are of none."""
    for row in recorded(ledger):
        if row.event.assignment is None or row.event.assignment in assignments:
            yield row.seq, row.event


def _told(first: Difference, count: int) -> str:
    of = "" if first.attempt is None else f" of attempt {first.attempt}"
    more = "" if count == 1 else f", and {count - 1} more"
    return (
        f"event {first.seq}, {first.what}{of}, does not follow from the runs of its campaign:"
        f" recorded is {first.recorded}, and they lead to {first.recomputed}{more}; a rig does not"
        " go on from it: run thermite audit --rejudge, and serve a backup or a new folder"
    )
