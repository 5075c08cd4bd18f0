"""Metric values and their messages: the page "Kit manifest", Metrics."""

import json
import math

import pytest

from tests.requirement import shows
from thermite.errors import InfrastructureError
from thermite.judge.measure.metric import Missing, problem, value
from thermite.judge.measure.printed import printed_numbers, shortest_decimal
from thermite.schema.kit import CellValue
from thermite.schema.rule import MetricRule

TIME = MetricRule(kind="time", unit="s", field=None, work={})
CHECKED = MetricRule(kind="check", unit="", field="acc", work={})


def rate(work: CellValue | None) -> MetricRule:
    cells = {} if work is None else {"a": json.dumps(work)}
    return MetricRule(kind="rate", unit="FLOP/s", field=None, work=cells)


@shows("K-050")
def test_a_rate_is_work_by_seconds_on_the_judges_clock() -> None:
    assert value("speed", rate(100), "a", 500_000_000, {}) == 200.0


@shows("D21")
def test_a_unit_is_a_label_and_scales_nothing() -> None:
    labelled = MetricRule(kind="rate", unit="GFLOP/s", field=None, work={"a": "100"})
    assert value("speed", labelled, "a", 500_000_000, {}) == 200.0
    late = MetricRule(kind="time", unit="ms", field=None, work={})
    assert value("seconds", late, "a", 51_000_000, {}) == 0.051


@shows("K-051")
def test_a_time_is_in_seconds() -> None:
    assert value("seconds", TIME, "a", 51_000_000, {}) == 0.051


@shows("K-052", "K-143")
def test_a_checks_number_is_taken_as_it_was_printed() -> None:
    assert value("accuracy", CHECKED, "a", 1, {"acc": 0.93}) == 0.93
    assert value("accuracy", CHECKED, "a", 1, {"acc": 7}) == 7.0


@pytest.mark.parametrize(
    ("printed", "got"),
    [
        pytest.param({"acc": 0}, "0", id="zero"),
        pytest.param({"acc": -1}, "-1", id="negative"),
        pytest.param({"acc": None}, "null", id="null"),
        pytest.param({"acc": True}, "true", id="true"),
        pytest.param({"acc": "0.9"}, '"0.9"', id="text"),
        pytest.param({"acc": [1]}, "[1]", id="list"),
        pytest.param({"other": 1}, "nothing", id="absent"),
    ],
)
@shows("K-054", "K-055", "D37")
def test_a_check_that_printed_no_number_above_zero_is_named(
    printed: dict[str, object], got: str
) -> None:
    assert value("accuracy", CHECKED, "a", 1, printed) == Missing(field="acc", got=got)


@pytest.mark.parametrize(
    ("work", "t_ns", "message"),
    [
        pytest.param(None, 5 * 10**8, "bad work nothing or time 0.5", id="absent"),
        pytest.param(0, 5 * 10**8, "bad work 0 or time 0.5", id="zero"),
        pytest.param(-3, 5 * 10**8, "bad work -3 or time 0.5", id="negative"),
        pytest.param("100", 5 * 10**8, 'bad work "100" or time 0.5', id="text"),
        pytest.param(True, 5 * 10**8, "bad work true or time 0.5", id="true"),
        pytest.param(7, 0, "bad work 7 or time 0", id="no time"),
        pytest.param("x", 12, 'bad work "x" or time 0.000000012', id="no exponent"),
    ],
)
@shows("K-056", "D37")
def test_a_kits_bad_work_is_the_kits_fault(work: CellValue | None, t_ns: int, message: str) -> None:
    with pytest.raises(InfrastructureError) as raised:
        value("speed", rate(work), "a", t_ns, {})
    assert str(raised.value) == f"kit metric speed: {message}"


@shows("K-054", "K-057", "K-058")
def test_values_beyond_floating_point_are_refused_in_words() -> None:
    huge = value("speed", rate(10**400), "a", 1, {})
    assert isinstance(huge, float)
    assert math.isinf(huge)
    assert problem("speed", huge) == "speed is not finite"
    assert problem("speed", 0.0) == "speed is 0, not above zero"
    assert problem("speed", 1e-300) is None


def test_printed_numbers_keep_every_digit_and_nothing_else() -> None:
    result = json.loads('{"pass": true, "n": 12345678901234567890123, "x": 0.1, "t": "1"}')
    assert printed_numbers(result) == {"n": "12345678901234567890123", "x": "0.1"}


def test_printed_numbers_mean_the_same_when_read_again() -> None:
    numbers = {"a": 0.1 + 0.2, "b": 1e-300, "c": 10**30, "d": 1e999}
    again = {name: float(text) for name, text in printed_numbers(numbers).items()}
    assert again == {name: float(number) for name, number in numbers.items()}


@pytest.mark.parametrize(
    ("number", "text"),
    [
        pytest.param(0.5, "0.5", id="plain"),
        pytest.param(1e-09, "0.000000001", id="small"),
        pytest.param(3.0, "3", id="whole"),
        pytest.param(1e22, "10000000000000000000000", id="large"),
    ],
)
def test_decimals_have_no_exponent(number: float, text: str) -> None:
    assert shortest_decimal(number) == text
