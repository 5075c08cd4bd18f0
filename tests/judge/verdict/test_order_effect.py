"""The check of the order: a candidate that slows whatever runs next."""

import pytest

from thermite.judge.verdict.order_effect import Pair, order_effect, rank_sum_p


def test_ranks_that_do_not_mix_are_significant() -> None:
    # By hand: m = n = 5, W = 15, mean 27.5, sd sqrt(25 * 11 / 12) = 4.787, z = -2.611.
    assert rank_sum_p([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]) == pytest.approx(0.00902, abs=1e-5)


def test_ties_narrow_the_spread() -> None:
    # W = 2 + 2 + 2 + 5 = 11 (ranks 2, 2, 2 shared), mean 14, ties 3: variance 7.5 * ...
    p = rank_sum_p([1, 1, 1, 3], [2, 4])
    assert 0.1 < p < 0.6


def test_equal_values_tell_nothing() -> None:
    assert rank_sum_p([1.0, 1.0], [1.0, 1.0, 1.0]) == 1.0


def test_the_side_does_not_matter() -> None:
    left, right = [0.1, 0.4, 0.2, 0.9], [0.5, 0.3, 0.8]
    assert rank_sum_p(left, right) == pytest.approx(rank_sum_p(right, left))


def test_cells_are_compared_around_their_own_middle() -> None:
    pairs = [
        Pair(cell=cell, d=level, champion_first=first)
        for cell, level in (("a", 0.0), ("b", 5.0))
        for first in (True, False) * 5
    ]
    assert order_effect(pairs) == (0.0, 1.0)


def test_one_order_alone_says_nothing() -> None:
    assert order_effect([Pair(cell="a", d=0.1, champion_first=True)] * 5) is None
