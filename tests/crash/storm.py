"""Kills at points that a seed draws, told by how much a ledger has grown.

Nothing here waits for a time: the next kill comes when so many more events stand in the
ledger, plus a moment that lets it fall into the middle of a step.
"""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from thermite.campaign.state import Assignment

MOST_IN_ONE = 3
"""Kills inside one attempt: the fourth interrupted block would end it (judging, 3.10)."""


@dataclass(frozen=True)
class Kill:
    """Whom to kill, when the ledger has grown by so many events, and after how many seconds."""

    victim: str
    growth: int
    pause_s: float


def plan(seed: int, victims: dict[str, int], growth: int) -> list[Kill]:
    """Draw an order of kills; the first one comes at once.

    Args:
        victims: how often each is killed; growth: events between two kills, on average.
    """
    rng = random.Random(seed)
    order = [name for name, count in victims.items() for _ in range(count)]
    rng.shuffle(order)
    gaps = [1, *(rng.randint(1, 2 * growth - 1) for _ in order[1:])]
    return [Kill(name, gap, rng.uniform(0, 0.2)) for name, gap in zip(order, gaps, strict=True)]


class Target(Protocol):
    """What a storm needs of a rig."""

    @property
    def assignment(self) -> Assignment | None:
        """The campaign as the ledger has it now."""

    @property
    def size(self) -> int:
        """How many events there are."""

    def kill(self, name: str) -> bool:
        """Kill one process by its number; False: it does not live now."""


@dataclass
class Storm:
    """Carries a plan out, kill by kill; `step` is to be called again and again."""

    target: Target
    left: list[Kill]
    done: list[str] = field(default_factory=list)
    hits: Counter[str] = field(default_factory=Counter)
    _seen: int = 0
    _due: float | None = None

    def step(self) -> bool:
        """Kill if one is due now; return whether something was killed."""
        if not self.left or not self._is_due(self.left[0]):
            return False
        where = at_work_on(self.target.assignment)
        if self.hits[where] >= MOST_IN_ONE or not self.target.kill(self.left[0].victim):
            return False
        self.hits[where] += 1
        self.done.append(f"{self.left.pop(0).victim} in {where}")
        self._seen, self._due = self.target.size, None
        return True

    def _is_due(self, kill: Kill) -> bool:
        if self._due is None and self.target.size - self._seen >= kill.growth:
            self._due = time.monotonic() + kill.pause_s
        return self._due is not None and time.monotonic() >= self._due


def at_work_on(assignment: Assignment | None) -> str:
    """Return what a campaign is at now: an attempt by its proposal, or a step before or after."""
    if assignment is None:
        return "the order"
    if assignment.status == "ended":
        return "the end"
    going = assignment.open_attempt(0)
    if going is not None:
        return going.started.proposal or str(going.started.attempt)
    if assignment.re_anchors:
        return "the re-anchor"
    return "between attempts" if assignment.attempts else "the selftest"


def weather(
    storm: Storm, over: Callable[[], bool], keep_up: Callable[[], None], most_s: float
) -> None:
    """Let a storm blow until the campaign is over.

    Args:
        keep_up: serves the rig again when its spawner has gone.
    """
    end = time.monotonic() + most_s
    while not over():
        assert time.monotonic() < end, f"no end within {most_s} s, after {storm.done}"
        storm.step()
        keep_up()
        time.sleep(0.01)
