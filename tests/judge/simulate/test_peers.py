"""The peers' rules do what they are said to do: right without noise, wrong with it."""

from collections.abc import Iterator
from itertools import chain, repeat
from random import Random

import pytest

from thermite.judge.simulate.campaign import Climbed, climb
from thermite.judge.simulate.edit import NULL, Edit, gain_of, mixed
from thermite.judge.simulate.noise import MODELS
from thermite.judge.simulate.peers import Greedy, peers

NAMES = sorted(peers())


def silent(draw: Random) -> Iterator[float]:
    del draw
    return repeat(0.0)


def climbed(name: str, edits: list[Edit]) -> Climbed:
    return climb(peers()[name](), edits, silent, "x")


@pytest.mark.parametrize("name", NAMES)
def test_a_peer_without_noise_takes_gains_only(name: str) -> None:
    verdicts = [
        out.verdict for out in climbed(name, [NULL, gain_of(0.05), gain_of(-0.05), NULL]).outcomes
    ]
    assert verdicts == ["not_better", "promoted", "not_better", "not_better"]


def test_a_margin_refuses_what_lies_below_it() -> None:
    assert [
        out.promoted for out in climbed("mean-of-5", [gain_of(0.009), gain_of(0.011)]).outcomes
    ] == [False, True]
    assert [
        out.promoted for out in climbed("median-of-10", [gain_of(0.019), gain_of(0.021)]).outcomes
    ] == [False, True]


def test_the_luck_of_a_stored_best_stays_in_the_way() -> None:
    # The start is measured at 10 % too fast once: no honest gain of 5 % beats that number.
    def lucky_first(draw: Random) -> Iterator[float]:
        del draw
        return chain([-0.1], repeat(0.0))

    peer = peers()["best-single"]()
    assert [out.promoted for out in climb(peer, [gain_of(0.05)], lucky_first, "x").outcomes] == [
        False
    ]


@pytest.mark.parametrize("name", NAMES)
def test_every_peer_crowns_nulls_on_heavy_noise(name: str) -> None:
    assert climb(peers()[name](), [NULL] * 200, MODELS["heavy"], "x").false_promotions > 0


def test_the_greedy_climber_reaches_every_real_gain() -> None:
    edits = mixed(Random(1), 200)
    climbed = climb(Greedy(), edits, silent, "x")
    assert sum(out.promoted for out in climbed.outcomes) == 10
    assert sum(edit.gain < 0.0 for edit in edits) == 10
    assert climbed.false_promotions == 0
    assert climbed.claimed_gain == pytest.approx(climbed.true_gain)
