"""What a machine adds to a run: the logarithm of the factor by which it takes longer.

A stretch of runs without a break is an occasion; an attempt takes one. `quiet` and `loaded` are
models whose figures resemble what was measured on one machine of two cores, `heavy` is
synthetic. Source: the design page on judging, 2.1 and 2.4; the numbers of `quiet` and `loaded`
were set by its figures of pairs of runs, not by what a rule makes of them.
"""

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Final, TypeAlias

Noise: TypeAlias = Callable[[Random], Iterator[float]]
"""A machine's noise: the runs of a new occasion, without end; each the ln of its factor."""


def quiet(draw: Random) -> Iterator[float]:
    """Yield runs of an idle machine with real-time runs.

    Differences of pairs: robust sd 0.6 %, sd 1.9 %, 95 % below 3.6 %, excess kurtosis 30;
    correlation of neighbours 0.39. Measured were 0.56 %, 1.8 %, 3.8 %, 31 and 0.39.
    """
    stay, spread = 0.95, 0.0105
    level = draw.gauss(0.0, spread)
    while True:
        level = stay * level + draw.gauss(0.0, spread * math.sqrt(1.0 - stay * stay))
        yield level + 0.0021 * _student_3(draw) + _spike(draw, chance=0.07, mean=0.034)


def heavy(draw: Random) -> Iterator[float]:
    """Yield runs with heavy tails and drift.

    Student's t with 3 degrees, sd 0.6 %; 2 % of the runs slower by 25 % on average; a level
    of its own in each occasion, sd 2 %; a random walk of 0.15 % a run.
    """
    return _drifting(draw, spread=0.006 / math.sqrt(3.0))


def heavier(draw: Random) -> Iterator[float]:
    """Yield runs as `heavy`, but 0.6 % is the scale of Student's t, not its sd.

    The source's "t3 0.6 %" can be read both ways; its figures fit to the sd.
    """
    return _drifting(draw, spread=0.006)


def loaded(draw: Random) -> Iterator[float]:
    """Yield runs of a machine that many others use: levels that jump, and long waits.

    Differences of pairs: robust sd 12 %, sd 36 %, 95 % below 0.8; correlation of neighbours
    0.8. Measured were 11 to 16 %, 39 %, 0.5 and 0.7.
    """
    longest = 2.5  # ln of 12 times: a run that takes longer is ended
    level = 0.0
    first = True
    while True:
        if first or draw.random() < 0.08:  # noqa: PLR2004 - the model's own numbers
            idle = draw.random() < 0.4  # noqa: PLR2004
            level = 0.0 if idle else min(longest, draw.expovariate(1.0 / 0.6))
        first = False
        wait = min(longest, _spike(draw, chance=0.08, mean=0.5))
        yield level + 0.05 * _student_3(draw) + wait


MODELS: Final[dict[str, Noise]] = {
    "quiet": quiet,
    "heavy": heavy,
    "heavier": heavier,
    "loaded": loaded,
}


def _drifting(draw: Random, *, spread: float) -> Iterator[float]:
    level = draw.gauss(0.0, 0.02)
    while True:
        level += draw.gauss(0.0, 0.0015)
        yield level + spread * _student_3(draw) + _spike(draw, chance=0.02, mean=0.25)


def _student_3(draw: Random) -> float:
    # A normal by the root of a mean of three squares, which is a gamma.
    return draw.gauss(0.0, 1.0) / math.sqrt(draw.gammavariate(1.5, 2.0) / 3.0)


def _spike(draw: Random, *, chance: float, mean: float) -> float:
    return draw.expovariate(1.0 / mean) if draw.random() < chance else 0.0
