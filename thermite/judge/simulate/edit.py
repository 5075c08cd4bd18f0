"""Edits with a known true gain, and the machine that they are timed on.

Gains are logarithms of ratios, as everywhere in the rule: 0.0198 makes a program 2 % faster.
"""

import math
from collections.abc import Iterator, Sequence
from random import Random

from thermite.judge.simulate.noise import Noise
from thermite.schema.strict import Strict


class Edit(Strict):
    """What an edit does to the speed: gain in the visible cells, held_out in the others."""

    gain: float = 0.0
    held_out: float = 0.0


NULL = Edit()


class Outcome(Strict):
    """What a rule made of an edit: its claim is a log-ratio; blocks: pairs of runs spent."""

    verdict: str
    blocks: float
    claim: float = 0.0

    @property
    def promoted(self) -> bool:
        """Whether the edit became champion."""
        return self.verdict == "promoted"


class Machine:
    """Times runs on noise; draw: of one attempt, so that no attempt changes the next one's."""

    def __init__(self, noise: Noise, draw: Random) -> None:
        self._runs: Iterator[float] = noise(draw)

    def ln_time(self, speed: float) -> float:
        """Return ln of the time of the next run of a program, 0 for one of speed 0."""
        return next(self._runs) - speed

    def ln_times(self, speed: float, count: int) -> list[float]:
        """Return so many runs of one program, one after the other."""
        return [self.ln_time(speed) for _ in range(count)]


def gain_of(fraction: float) -> Edit:
    """Return an edit that is worth a fraction everywhere: 0.02 is 2 % faster."""
    return Edit(gain=math.log1p(fraction), held_out=math.log1p(fraction))


def mixed(draw: Random, attempts: int) -> Sequence[Edit]:
    """Return edits of which one in twenty is worth +1 to +5 %, one -1 to -5 %, the rest nothing.

    Source: the design page on judging, 2.4.
    """
    real = attempts // 20
    better = [gain_of(draw.uniform(0.01, 0.05)) for _ in range(real)]
    worse = [gain_of(-draw.uniform(0.01, 0.05)) for _ in range(real)]
    edits = [*better, *worse, *[NULL] * (attempts - 2 * real)]
    draw.shuffle(edits)
    return edits
