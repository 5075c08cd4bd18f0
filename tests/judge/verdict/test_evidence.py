"""Sign-flip evidence: the figures of the page on judging, 3.2, and the laws behind them."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermite.judge.verdict.evidence import (
    is_lower_bound,
    ln_evidence,
    ln_evidence_below,
    lower_bound,
    standard_error,
    trimmed_mean,
    upper_bound,
)
from thermite.schema.contract_rules import fewest_blocks

GOLDEN = [0.03, -0.01, 0.05, 0.02, 0.04]
RATIOS = st.lists(st.floats(min_value=-5.0, max_value=5.0), min_size=1, max_size=30)


def test_evidence_is_the_documents_to_the_digit() -> None:
    assert ln_evidence(GOLDEN) == pytest.approx(0.7856016, abs=5e-8)
    assert ln_evidence_below(GOLDEN, math.log(1.03)) == pytest.approx(-1.8964485, abs=5e-8)
    assert ln_evidence([0.05] * 10) == pytest.approx(6.8389899, abs=5e-8)


def test_trimmed_mean_and_its_error_are_the_documents_to_the_digit() -> None:
    assert trimmed_mean(GOLDEN) == pytest.approx(0.03, abs=1e-12)
    assert standard_error(GOLDEN) == pytest.approx(0.00745356, abs=5e-9)


def test_no_values_are_no_evidence() -> None:
    assert ln_evidence([]) == pytest.approx(0.0, abs=1e-12)


def test_values_of_zero_are_no_evidence() -> None:
    assert ln_evidence([0.0] * 7) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    "values",
    [
        pytest.param([-3.0] * 40, id="tanh rounds to -1 here"),
        pytest.param([700.0] * 10_000, id="10,000 huge gains"),
        pytest.param([-700.0] * 10_000, id="10,000 huge losses"),
    ],
)
def test_evidence_stays_a_number_at_the_ends(values: list[float]) -> None:
    assert math.isfinite(ln_evidence(values))


def test_evidence_has_the_mean_one_when_signs_are_coins() -> None:
    # The theorem itself, whole: the mean of E over all 2^6 ways the coin can fall is 1.
    sizes = [0.5, 0.001, 0.03, 0.0, 0.004, 0.2]
    flips = range(2 ** len(sizes))
    total = sum(
        math.exp(ln_evidence([-d if flip >> place & 1 else d for place, d in enumerate(sizes)]))
        for flip in flips
    )
    assert total / len(flips) == pytest.approx(1.0, rel=1e-9)


@given(RATIOS)
def test_blocks_never_show_more_than_a_contract_is_held_to(values: list[float]) -> None:
    assert fewest_blocks(ln_evidence(values)) <= len(values)


@pytest.mark.parametrize(
    ("count", "least"),
    [pytest.param(6, 50.0, id="screen"), pytest.param(10, 800.0, id="confirm up to k 200")],
)
def test_fewest_blocks_are_those_of_the_page(count: int, least: float) -> None:
    assert fewest_blocks(math.log(least)) == count
    huge = [700.0]
    assert ln_evidence(huge * count) >= math.log(least) > ln_evidence(huge * (count - 1))


@given(RATIOS, st.floats(min_value=0.0, max_value=1.0))
def test_better_values_are_more_evidence(values: list[float], more: float) -> None:
    assert ln_evidence([value + more for value in values]) >= ln_evidence(values) - 1e-9


@given(RATIOS)
def test_bounds_lie_around_the_values_and_mirror(values: list[float]) -> None:
    low, high = lower_bound(values), upper_bound(values)
    assert low is None or low <= max(values)
    assert high is None or high >= min(values)
    mirrored = lower_bound([-value for value in values])
    assert (high is None) is (mirrored is None)
    assert high is None or high == -(mirrored or 0.0)


def test_five_blocks_bound_nothing() -> None:
    # 2^5 = 32 is less than 40, the evidence that a bound asks for.
    assert lower_bound([0.5] * 5) is None
    assert upper_bound([0.5] * 5) is None


def test_bounds_of_equal_values_are_within_the_bisections_step() -> None:
    low, high = lower_bound([0.05] * 10), upper_bound([0.05] * 10)
    assert low == pytest.approx(0.05, abs=2e-6)
    assert high == pytest.approx(0.05, abs=2e-6)


@pytest.mark.parametrize(
    ("values", "mean"),
    [
        pytest.param([1.0], 1.0, id="one"),
        pytest.param([1.0, 2.0, 3.0, 100.0], 26.5, id="four: nothing dropped"),
        pytest.param([-50.0, 1.0, 2.0, 3.0, 100.0], 2.0, id="five: one at each end"),
        pytest.param([0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0, 9.0], 1.0, id="ten: two"),
    ],
)
def test_one_value_in_five_is_dropped_at_each_end(values: list[float], mean: float) -> None:
    shuffled = random.Random(1).sample(values, len(values))
    assert trimmed_mean(shuffled) == pytest.approx(mean)


def test_one_value_has_no_error() -> None:
    assert standard_error([0.1]) is None
    assert standard_error([0.1, 0.1]) == 0.0


@given(st.one_of(RATIOS, st.lists(st.floats(0.2, 6.0), min_size=8, max_size=30)))
def test_a_bound_is_known_without_searching_for_it(values: list[float]) -> None:
    bound = lower_bound(values)
    assert is_lower_bound(values, bound, 1e-6)
    if bound is None:
        assert not is_lower_bound(values, 0.0, 1e-6)
        return
    assert is_lower_bound(values, bound + 5e-7, 1e-6) or bound + 5e-7 > 3.0
    for forged in (None, bound - 4e-6, bound + 4e-6, -3.1, 3.1):
        assert not is_lower_bound(values, forged, 1e-6)
