"""What the rule promises on noise, and that this test would notice if it no longer did."""

from collections.abc import Callable, Sequence
from random import Random

import pytest

from thermite.judge.simulate.attempt import ScreenOnly, SignFlip, parameters
from thermite.judge.simulate.campaign import Climbed, Climber, campaigns
from thermite.judge.simulate.edit import NULL, Edit
from thermite.judge.simulate.figures import mean_blocks, with_false_promotion
from thermite.judge.simulate.noise import MODELS

P = parameters(0.005)
CAMPAIGNS = 10  # on each of two kinds of noise: 20 in all, 2 to 3 s each
ATTEMPTS = 200


def nulls(draw: Random) -> Sequence[Edit]:
    del draw
    return [NULL] * ATTEMPTS


def null_campaigns(make: Callable[[bytes], Climber], noise: str, count: int) -> list[Climbed]:
    return campaigns(make, nulls, MODELS[noise], "smoke", count)


@pytest.mark.parametrize("noise", ["quiet", "heavy"])
def test_campaigns_of_nulls_promote_nothing_and_are_cheap(noise: str) -> None:
    climbed = null_campaigns(lambda seed: SignFlip(P, seed), noise, CAMPAIGNS)
    assert with_false_promotion(climbed).count == 0
    assert mean_blocks(climbed) <= 7.0


def test_the_same_campaigns_convict_a_rule_without_its_confirm_stage() -> None:
    climbed = null_campaigns(lambda seed: ScreenOnly(P, seed), "heavy", 4)
    assert with_false_promotion(climbed).count >= 2


def test_the_same_seed_gives_the_same_campaign() -> None:
    def once() -> list[Climbed]:
        edits = [NULL] * 3
        return campaigns(lambda s: SignFlip(P, s), lambda _: edits, MODELS["loaded"], "again", 2)

    first = once()
    assert first == once()
    assert first[0].outcomes != first[1].outcomes
