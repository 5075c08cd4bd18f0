"""The slots of a rig that gateways run in: each campaign with tools has one of them to itself."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from thermite.rig.stages import Stages

SLOT: Final = "gateway-"
LOOK_S: Final = 1.0
"""How often a campaign that waits for a slot looks again without being told (our figure)."""


@dataclass
class GatewaySlots:
    """The slots for gateways, of which each campaign with tools has one."""

    taken: set[str] = field(default_factory=set)

    @contextlib.contextmanager
    def one(
        self, stages: Stages, changed: threading.Condition, must_stop: Callable[[], bool]
    ) -> Iterator[str | None]:
        """Lend a slot's name; None where the rig has none, or the campaign must stop.

        Args:
            changed: of the book; another campaign's end frees its slot, and so notifies it.
        """
        every = [name for name in stages.slot_names if name.startswith(SLOT)]
        with changed:
            while every and self.taken.issuperset(every) and not must_stop():
                changed.wait(LOOK_S)
            name = next((one for one in every if one not in self.taken), None)
            self.taken |= {name} if name else set()
        try:
            yield name
        finally:
            with changed:
                self.taken.discard(name or "")
                changed.notify_all()
