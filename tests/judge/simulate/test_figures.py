"""Counts with the bounds that tables of Clopper and Pearson have."""

import math

import pytest

from thermite.judge.simulate.campaign import Climbed
from thermite.judge.simulate.edit import NULL, Edit, Outcome, gain_of
from thermite.judge.simulate.figures import (
    Share,
    claim_bias_pp,
    mean_blocks,
    mean_gains,
    promoted,
    with_false_promotion,
)


@pytest.mark.parametrize(
    ("count", "of", "at_most"),
    [
        pytest.param(0, 300, 0.00994, id="none of 300"),
        pytest.param(0, 20, 0.1391, id="none of 20"),
        pytest.param(3, 1000, 0.00773, id="3 of 1000"),
        pytest.param(17, 20, 0.9578, id="17 of 20"),
        pytest.param(5, 5, 1.0, id="all"),
    ],
)
def test_the_bound_of_a_share(count: int, of: int, at_most: float) -> None:
    assert Share(count=count, of=of).at_most == pytest.approx(at_most, abs=5e-5)


def campaign(*steps: tuple[Edit, float | None]) -> Climbed:
    """Steps: an edit and the claim that it was promoted with, None when it wasn't."""
    outcomes = [
        Outcome(verdict="not_better", blocks=5)
        if claim is None
        else Outcome(verdict="promoted", blocks=20, claim=math.log1p(claim))
        for _, claim in steps
    ]
    return Climbed(edits=[edit for edit, _ in steps], outcomes=outcomes)


def test_figures_of_two_campaigns() -> None:
    both = [
        campaign((NULL, None), (gain_of(0.02), 0.025), (gain_of(0.04), None)),
        campaign((NULL, 0.01), (gain_of(-0.01), 0.0), (NULL, None)),
    ]
    assert with_false_promotion(both) == Share(count=1, of=2)
    assert both[1].false_promotions == 2
    assert promoted(both) == Share(count=3, of=6)
    assert mean_blocks(both) == pytest.approx(12.5)
    assert claim_bias_pp(both) == pytest.approx((0.5 + 1.0 + 1.0) / 3)
    assert mean_gains(both) == pytest.approx(((0.025 + 0.01) / 2, (0.02 - 0.01) / 2))


def test_no_promotion_has_no_bias() -> None:
    assert claim_bias_pp([campaign((NULL, None))]) is None


def test_claims_beyond_a_float_are_infinite() -> None:
    assert campaign((NULL, 1e300), (NULL, 1e300)).claimed_gain == math.inf
