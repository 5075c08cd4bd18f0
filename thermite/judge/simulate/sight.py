"""How small a gain a rig sees: its own blocks, drawn again, with a gain put on top.

Each block is drawn with its sign drawn anew, since the coin gave it the one that it has; then
the rule decides on such series with a known gain. Source: the design page on judging, 3.7.
"""

import math
from collections.abc import Sequence
from random import Random
from typing import Final

from thermite.judge.simulate.attempt import METRIC, parameters
from thermite.judge.verdict.walk import walk
from thermite.schema.rule import MeasuredBlock, RuleParameters
from thermite.schema.verdict import JudgeStage

POWER: Final = 0.9
"""Share of attempts with a gain that must be promoted for the rig to see it (judging, 3.7)."""
DRAWN: Final = 60
"""Attempts of each gain; 54 of 60 are then asked for (our figure: a second in all)."""
STEPS: Final = 6
"""Halvings between the gains that are tried: to 2 % of the answer (our figure)."""
LARGEST: Final = 1.0
"""A rig that doesn't see twice the speed sees nothing (our bound)."""
_CELL: Final = "cell 1"


def sees(ds: Sequence[float], min_effect: float, seed: str) -> float | None:
    """Return the smallest gain that is promoted in nine of ten attempts, a fraction.

    Args:
        ds: D of the selftest's blocks, log-ratios; seed: draws the series.

    None: not even the largest is seen, or there are no blocks.
    """
    p = parameters(min_effect)
    if not ds or not _is_seen(ds, LARGEST, p, seed):
        return None
    low, high = min_effect, max(LARGEST, min_effect)
    for factor in (1.25, 1.5, 2.0, 3.0, 5.0):  # most rigs see a few times min_effect
        if min_effect * factor < high and _is_seen(ds, min_effect * factor, p, seed):
            high = min_effect * factor
            break
        low = min(min_effect * factor, high)
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        if _is_seen(ds, middle, p, seed):
            high = middle
        else:
            low = middle
    return high


def _is_seen(ds: Sequence[float], gain: float, p: RuleParameters, seed: str) -> bool:
    promoted = sum(
        _is_promoted(ds, math.log1p(gain), p, Random(f"{seed}/{number}")) for number in range(DRAWN)
    )
    return promoted >= POWER * DRAWN


def _is_promoted(ds: Sequence[float], gain: float, p: RuleParameters, draw: Random) -> bool:
    def block(stage: JudgeStage, number: int) -> MeasuredBlock:
        return _block(stage, number, ds, gain, draw)

    *_, (stage, _, ruling) = walk(block, p, 1)
    return stage == "confirm" and ruling.action in {"pass", "hold"}


def _block(
    stage: JudgeStage, number: int, ds: Sequence[float], gain: float, draw: Random
) -> MeasuredBlock:
    first = draw.random() < 0.5  # noqa: PLR2004 - a fair coin
    d = draw.choice(ds) * (1 if first else -1) + gain
    return MeasuredBlock(  # the simulated metric is a time, of which less is better
        stage=stage,
        block=number,
        ln_ratio={METRIC: {_CELL: -d}},
        champion_first={_CELL: first},
    )
