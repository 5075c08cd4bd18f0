"""How small a gain a rig sees follows from its own blocks."""

from random import Random

import pytest

from thermite.judge.simulate.sight import sees


def blocks(sd: float) -> list[float]:
    draw = Random(5)
    return [draw.gauss(0.0, sd) for _ in range(40)]


@pytest.mark.parametrize(
    ("sd", "least", "most"),
    [
        pytest.param(0.0001, 0.03, 0.0310, id="hardly any noise: min_effect itself"),
        pytest.param(0.006, 0.03, 0.045, id="quiet"),
        pytest.param(0.05, 0.06, 0.2, id="noisy"),
    ],
)
def test_more_noise_hides_larger_gains(sd: float, least: float, most: float) -> None:
    found = sees(blocks(sd), 0.03, "seed")
    assert found is not None
    assert least <= found <= most


def test_the_same_blocks_and_seed_give_the_same_gain() -> None:
    assert sees(blocks(0.001), 0.03, "seed") == sees(blocks(0.001), 0.03, "seed")


def test_a_rig_may_see_nothing() -> None:
    assert sees(blocks(2.0), 0.03, "seed") is None
    assert sees([], 0.03, "seed") is None
