"""What other harnesses do, as small models of their decision rules: stored bests and tests.

They are models of rules read in their code or documents, in one cell, not runs of their
software. A stored rule compares with the champion's number from the day it won. Source:
the design page on judging, 1.3 and 2.4.
"""

import math
from collections.abc import Callable, Sequence
from statistics import fmean, median, stdev, variance
from typing import Final

from thermite.judge.simulate.edit import Edit, Machine, Outcome

SEM_SHARE: Final = 0.001
SEM_FEWEST: Final = 3
SEM_MOST: Final = 100
"""Repeat until standard error / mean < 0.1 %, from 3 runs to 100 (GPU Mode, SkyDiscover)."""
PAIRS: Final = 10
"""Pairs, or runs of each arm, that a test looks at (judging, 2.4)."""
T_9: Final = 2.262
"""Student's t at 5 % on two sides, 9 degrees (any table of t)."""
T_9_TO_18: Final = (2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101)
"""The same from 9 degrees to 18: where Welch's lie for 10 and 10 runs."""
SIGNED_RANKS_10: Final = 8
"""Sum of the ranks against it at 5 % on two sides, 10 pairs (any table of Wilcoxon's test)."""


class Stored:
    """Promote what scores better than the champion's stored number by more than a margin."""

    def __init__(self, score: Callable[[Machine, float], tuple[float, int]], margin: float) -> None:
        """score: ln of a program's time by that rule and how many runs it took; margin: ln."""
        self._score, self._margin = score, margin
        self._best: float | None = None

    def judge(self, k: int, edit: Edit, champion: float, machine: Machine) -> Outcome:
        """Return the verdict; the first attempt also measures the start."""
        del k
        if self._best is None:
            self._best, _ = self._score(machine, champion)
        found, runs = self._score(machine, champion + edit.gain)
        gain = self._best - found
        if gain <= self._margin:
            return Outcome(verdict="not_better", blocks=runs / 2.0)
        self._best = found
        return Outcome(verdict="promoted", blocks=runs / 2.0, claim=gain)


class Tested:
    """Promote what a test of the two arms' runs calls significantly faster."""

    def __init__(self, test: Callable[[Machine, float, float], tuple[bool, float]]) -> None:
        """test: takes both speeds; whether the candidate is better, and the gain it shows."""
        self._test = test

    def judge(self, k: int, edit: Edit, champion: float, machine: Machine) -> Outcome:
        """Return the verdict; both arms run anew."""
        del k
        better, gain = self._test(machine, champion, champion + edit.gain)
        verdict = "promoted" if better else "not_better"
        return Outcome(verdict=verdict, blocks=PAIRS, claim=gain)


class Greedy:
    """A climber that sees the true gain and takes all of it: what could be reached."""

    def judge(self, k: int, edit: Edit, champion: float, machine: Machine) -> Outcome:
        """Promote every edit that is truly better."""
        del k, champion, machine
        verdict = "promoted" if edit.gain > 0.0 else "not_better"
        return Outcome(verdict=verdict, blocks=0, claim=edit.gain)


Peer = Stored | Tested | Greedy


def peers() -> dict[str, Callable[[], Peer]]:
    """Return the peers' rules by name; each call of one makes a fresh climber."""
    return {
        "best-single": lambda: Stored(_of(1, min), 0.0),
        "best-of-10": lambda: Stored(_of(10, min), 0.0),
        "repeat-until-sem": lambda: Stored(_until_sem, 0.0),
        "mean-of-5": lambda: Stored(_of(5, _ln_mean), math.log1p(0.01)),
        "median-of-10": lambda: Stored(_of(10, median), math.log1p(0.02)),
        "welch": lambda: Tested(welch),
        "paired-t": lambda: Tested(paired_t),
        "wilcoxon": lambda: Tested(wilcoxon),
    }


def paired_t(machine: Machine, champion: float, candidate: float) -> tuple[bool, float]:
    """Test 10 pairs by Student's t at 5 %."""
    ds = _pairs(machine, champion, candidate)
    spread = stdev(ds)
    return fmean(ds) * math.sqrt(PAIRS) > T_9 * spread, fmean(ds)


def wilcoxon(machine: Machine, champion: float, candidate: float) -> tuple[bool, float]:
    """Test 10 pairs by Wilcoxon's signed ranks at 5 %."""
    ds = _pairs(machine, champion, candidate)
    by_size = sorted(ds, key=abs)
    against = sum(rank for rank, d in enumerate(by_size, 1) if d <= 0.0)
    return against <= SIGNED_RANKS_10, fmean(ds)


def welch(machine: Machine, champion: float, candidate: float) -> tuple[bool, float]:
    """Test 10 runs of one arm, then 10 of the other, by Welch's t at 5 %."""
    theirs = machine.ln_times(champion, PAIRS)
    ours = machine.ln_times(candidate, PAIRS)
    gain = fmean(theirs) - fmean(ours)
    a, b = variance(theirs) / PAIRS, variance(ours) / PAIRS
    if a + b == 0.0:
        return gain > 0.0, gain
    degrees = (a + b) ** 2 / ((a * a + b * b) / (PAIRS - 1))
    place = min(max(math.floor(degrees) - 9, 0), len(T_9_TO_18) - 1)
    return gain > T_9_TO_18[place] * math.sqrt(a + b), gain


def _pairs(machine: Machine, champion: float, candidate: float) -> list[float]:
    # Arms in the same order each time: no coin in these rules.
    return [machine.ln_time(champion) - machine.ln_time(candidate) for _ in range(PAIRS)]


def _of(
    count: int, summary: Callable[[Sequence[float]], float]
) -> Callable[[Machine, float], tuple[float, int]]:
    def score(machine: Machine, speed: float) -> tuple[float, int]:
        return summary(machine.ln_times(speed, count)), count

    return score


def _ln_mean(ln_times: Sequence[float]) -> float:
    return math.log(fmean(math.exp(ln_time) for ln_time in ln_times))


def _until_sem(machine: Machine, speed: float) -> tuple[float, int]:
    runs, total, squares = 0, 0.0, 0.0
    while runs < SEM_MOST:
        # Running sums of time - 1: recomputing a deviation for each run costs 30 times as much.
        apart = math.expm1(machine.ln_time(speed))
        runs, total, squares = runs + 1, total + apart, squares + apart * apart
        mean = total / runs
        spread = max(0.0, squares - runs * mean * mean) / max(1, runs - 1)
        if runs >= SEM_FEWEST and math.sqrt(spread / runs) < SEM_SHARE * (1.0 + mean):
            break
    return math.log1p(total / runs), runs
