"""A ledger that grows, as a command sees it: event after event, with the state so far."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from thermite.campaign.fold import fold
from thermite.campaign.state import Assignment, State
from thermite.cli.exits import CommandEnds, Exit
from thermite.ledger.replay import Recorded, recorded

PAUSE_S: Final = 0.2
"""How often a growing ledger is looked at (our figure: a person sees no delay)."""
MOST_NAMED: Final = 5
"""Campaigns that a message names (our figure: a line of a terminal)."""


class Follower:
    """Reads a ledger from event 1 on, and goes on as it grows; state is what it means so far."""

    def __init__(self, ledger: Path) -> None:
        self.ledger = ledger
        self.state = State()

    def new(self) -> Iterator[Recorded]:
        """Yield the events that came since the last call; the state has folded each."""
        if not self.ledger.exists():
            return
        for row in recorded(self.ledger, self.state.seq):
            if row.event is not None:
                fold(self.state, row.seq, row.event)
            yield row

    def campaign(self, wanted: str) -> Assignment:
        """Return the campaign whose id begins so; of those read so far the newest for no digits.

        Raises:
            CommandEnds: there is none (not found), or several begin so (usage).
        """
        found = [one for one in self.state.assignments.values() if one.id.startswith(wanted)]
        if not found:
            raise CommandEnds(Exit.NOT_FOUND, f"there is no campaign {wanted or 'yet'}")
        if wanted and len(found) > 1:
            ids = ", ".join(one.id[:12] for one in found[-MOST_NAMED:])
            said = f"{len(found)} campaigns' ids begin with {wanted[:32]!r}, as {ids}"
            raise CommandEnds(Exit.USAGE, f"{said}: give more digits")
        return found[-1]

    def wait(self) -> None:
        """Let the ledger grow for a moment."""
        time.sleep(PAUSE_S)
