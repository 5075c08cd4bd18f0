"""A campaign of simulated attempts: what is promoted is what the next edit is made on."""

import hashlib
import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Protocol

from thermite.judge.simulate.edit import Edit, Machine, Outcome
from thermite.judge.simulate.noise import Noise
from thermite.schema.strict import Strict


class Climber(Protocol):
    """A rule in the middle of a campaign."""

    def judge(self, k: int, edit: Edit, champion: float, machine: Machine) -> Outcome:
        """Return the verdict on an edit of a champion of that speed, at the index k from 1."""


class Climbed(Strict):
    """A campaign's end, every attempt's edit beside its outcome."""

    edits: list[Edit]
    outcomes: list[Outcome]

    @property
    def false_promotions(self) -> int:
        """How many edits became champion that are no better."""
        both = zip(self.edits, self.outcomes, strict=True)
        return sum(out.promoted and edit.gain <= 0.0 for edit, out in both)

    @property
    def true_gain(self) -> float:
        """What the promoted edits are worth in all, a fraction."""
        both = zip(self.edits, self.outcomes, strict=True)
        return math.expm1(math.fsum(edit.gain for edit, out in both if out.promoted))

    @property
    def claimed_gain(self) -> float:
        """What their claims come to in all, a fraction; infinite beyond a float."""
        total = math.fsum(out.claim for out in self.outcomes if out.promoted)
        return math.expm1(total) if total < 700.0 else math.inf  # noqa: PLR2004 - e^709 is the last


def climb(climber: Climber, edits: Sequence[Edit], noise: Noise, seed: str) -> Climbed:
    """Judge edits one after the other, each at an occasion of its own.

    Args:
        seed: names the campaign and the rule; an attempt's noise depends on it and on its
            place only.
    """
    champion = 0.0
    outcomes = []
    for k, edit in enumerate(edits, 1):
        outcome = climber.judge(k, edit, champion, Machine(noise, Random(f"{seed}/{k}")))
        champion += edit.gain if outcome.promoted else 0.0
        outcomes.append(outcome)
    return Climbed(edits=list(edits), outcomes=outcomes)


def campaigns(
    make: Callable[[bytes], Climber],
    edits: Callable[[Random], Sequence[Edit]],
    noise: Noise,
    seed: str,
    count: int,
) -> list[Climbed]:
    """Return so many campaigns, a fresh climber each; every rule sees the same edits.

    Args:
        make: takes the 32 bytes that a campaign's orders are drawn from.
    """
    return [campaign(make, edits, noise, f"{seed}/{number}") for number in range(count)]


def campaign(
    make: Callable[[bytes], Climber],
    edits: Callable[[Random], Sequence[Edit]],
    noise: Noise,
    seed: str,
) -> Climbed:
    """Return one campaign; its orders, edits and noise depend on the seed only."""
    order = hashlib.sha256(f"{seed}/order".encode()).digest()
    return climb(make(order), edits(Random(f"{seed}/edits")), noise, seed)
