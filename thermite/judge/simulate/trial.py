"""One rule tried on one noise: what it crowns wrongly, finds, spends and claims.

Three series of campaigns answer that: of nulls, of edits that all have one true gain, and of
nulls of which one in ten has it. A series is made a campaign at a time, so that a caller can
have many made at once; each depends on the seed, its series and its number only, and every
rule sees the same edits on the same noise.
"""

import math
from collections.abc import Callable, Sequence
from random import Random
from typing import Final, Literal, TypeAlias, get_args

from thermite.judge.simulate.attempt import ScreenOnly, SignFlip, parameters
from thermite.judge.simulate.campaign import Climbed, Climber, campaign
from thermite.judge.simulate.edit import NULL, Edit, gain_of
from thermite.judge.simulate.figures import (
    claim_bias_pp,
    mean_blocks,
    mean_gains,
    promoted,
    with_false_promotion,
)
from thermite.judge.simulate.noise import Noise
from thermite.judge.simulate.peers import peers
from thermite.schema.contract import Judging, RuleName
from thermite.schema.strict import Strict

Series: TypeAlias = Literal["null", "gain", "mixed"]
SERIES: Final[tuple[Series, ...]] = get_args(Series)
OURS: Final[tuple[RuleName, ...]] = get_args(RuleName)
"""Our rule in its versions, the newest last: they differ in holds only (`verdict.rule`)."""
SCREEN_ALONE: Final = "screen-alone"
"""The rule without its confirm stage, for comparison; nobody is offered it as a rule."""
ONE_IN: Final = 10
"""In a mixed campaign one attempt in ten has the gain (the issue's own figure)."""


class Question(Strict):
    """What is tried: fractions as in a contract; seed: names everything that is drawn."""

    min_effect: float
    effect: float
    cells: int
    attempts: int
    campaigns: int
    seed: int


class Trial(Strict):
    """What a rule came to.

    false_champion_campaigns: of `campaigns` campaigns of nulls; mean_blocks: of a null attempt;
    power: share of attempts with the gain that were promoted; claim_bias_pp: claimed minus
    true gain of a promotion, percentage points, None without one; claimed_gain, true_gain:
    mean totals of a mixed campaign, fractions, None where a claim leaves the range of a float.
    """

    campaigns: int
    false_champion_campaigns: int
    power: float
    mean_blocks: float
    claim_bias_pp: float | None
    claimed_gain: float | None
    true_gain: float


def rules() -> list[str]:
    """Return the names of the rules: ours, the newest first, then the peers'."""
    return [*reversed(OURS), *peers()]


def one_campaign(rule: str, series: Series, number: int, asked: Question, noise: Noise) -> Climbed:
    """Return one campaign of a series by a rule of `rules` or `SCREEN_ALONE`."""
    seed = f"{asked.seed}/{series}/{number}"
    return campaign(_climber(rule, asked), lambda draw: _edits(series, asked, draw), noise, seed)


def trial(asked: Question, made: dict[Series, Sequence[Climbed]]) -> Trial:
    """Return what the campaigns of all three series come to."""
    claimed, true = mean_gains(made["mixed"])
    return Trial(
        campaigns=asked.campaigns,
        false_champion_campaigns=with_false_promotion(made["null"]).count,
        power=promoted(made["gain"]).share,
        mean_blocks=mean_blocks(made["null"]),
        claim_bias_pp=_finite(claim_bias_pp(made["gain"])),
        claimed_gain=_finite(claimed),
        true_gain=true,
    )


def _climber(rule: str, asked: Question) -> Callable[[bytes], Climber]:
    ours = next((name for name in OURS if name == rule), OURS[-1])
    p = parameters(asked.min_effect, cells=asked.cells, judging=Judging(rule=ours))
    if rule == ours:
        return lambda order: SignFlip(p, order)
    if rule == SCREEN_ALONE:
        return lambda order: ScreenOnly(p, order)
    make = peers()[rule]
    return lambda _: make()


def _edits(series: Series, asked: Question, draw: Random) -> Sequence[Edit]:
    gain = gain_of(asked.effect)
    match series:
        case "null":
            return [NULL] * asked.attempts
        case "gain":
            return [gain] * asked.attempts
        case "mixed":
            better = max(1, asked.attempts // ONE_IN)
            edits = [gain] * better + [NULL] * (asked.attempts - better)
            draw.shuffle(edits)
            return edits


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
