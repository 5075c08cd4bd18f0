"""The rule `exact-1`: values of the check that never vary decide in four blocks."""

import math
from collections.abc import Mapping

import msgspec
import pytest

from tests.judge.verdict.test_rule import ACCURACY, CHECKED, RATE, parameters
from thermite.judge.verdict import exact
from thermite.judge.verdict.rule import decide_confirm, decide_screen
from thermite.schema.contract import Judging, Primary
from thermite.schema.rule import MeasuredBlock, RuleParameters
from thermite.schema.verdict import JudgeStage

SIZE = {"size": CHECKED, "accuracy": CHECKED}


def checked(**changed: object) -> RuleParameters:
    return parameters(**({"primary": Primary(metric="size"), "metrics": SIZE} | changed))  # type: ignore[arg-type]


def block(stage: JudgeStage, number: int, **value: float) -> MeasuredBlock:
    """A block in which the champion has size and accuracy 1 in each cell."""
    accuracy = value.pop("accuracy", 1.0)
    values = {
        "size": {cell: (found, 1.0) for cell, found in value.items()},
        "accuracy": dict.fromkeys(value, (accuracy, 1.0)),
    }
    return MeasuredBlock(
        stage=stage,
        block=number,
        ln_ratio=ratios(values),
        champion_first=dict.fromkeys(value, True),
        values=values,
    )


def ratios(values: Mapping[str, Mapping[str, tuple[float, float]]]) -> dict[str, dict[str, float]]:
    return {
        metric: {cell: math.log(a) - math.log(b) for cell, (a, b) in cells.items()}
        for metric, cells in values.items()
    }


def screen(count: int, **value: float) -> list[MeasuredBlock]:
    return [block("screen", number, **value) for number in range(count)]


@pytest.mark.parametrize(
    ("value", "decided"),
    [
        pytest.param({"a": 1.04, "b": 1.04}, ("pass", None), id="a gain"),
        pytest.param({"a": 1.03, "b": 1.03}, ("pass", None), id="exactly min_effect"),
        pytest.param({"a": 1.029, "b": 1.029}, ("stop", "not_better"), id="just below"),
        pytest.param({"a": 1.0, "b": 1.0}, ("stop", "not_better"), id="the same"),
        pytest.param({"a": 0.999, "b": 1.0}, ("stop", "regressed"), id="worse by a hair"),
        pytest.param(
            {"a": 1.04, "b": 1.04, "accuracy": 0.98}, ("stop", "guard_failed"), id="guard lost"
        ),
        pytest.param({"a": 1.04, "b": 1.04, "accuracy": 0.99}, ("pass", None), id="guard at bound"),
    ],
)
def test_three_equal_blocks_decide_screen(
    value: dict[str, float], decided: tuple[str, str | None]
) -> None:
    p = checked(guards=[ACCURACY])
    found = decide_screen(screen(3, **value), p)
    assert (found.n, found.action, found.result, found.rule) == (3, *decided, "exact-1")
    assert found.lcb == found.ucb == found.t
    assert found.guards == {ACCURACY.name: pytest.approx(math.log(value.get("accuracy", 1.0)))}


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_blocks_decide_nothing(count: int) -> None:
    # min_blocks 1: the other rule would give up at once.
    p = checked(judging=Judging(min_blocks=1))
    found = decide_screen(screen(count, a=0.5, b=0.5), p)
    assert (found.action, found.rule) == ("continue", "signflip-2")


def test_a_value_that_differs_leaves_screen_to_the_other_rule() -> None:
    varied = [*screen(2, a=1.04, b=1.04), block("screen", 2, a=1.05, b=1.04)]
    found = decide_screen(varied, checked())
    assert (found.action, found.rule) == ("continue", "signflip-2")


def test_two_arms_that_vary_together_are_not_exact() -> None:
    same = block("screen", 2, a=1.04, b=1.04)
    both = msgspec.structs.replace(
        same, values={"size": {"a": (2.08, 2.0), "b": (2.08, 2.0)}, "accuracy": same.values["size"]}
    )
    assert not exact.decides([*screen(2, a=1.04, b=1.04), both], checked())


@pytest.mark.parametrize(
    "p",
    [
        pytest.param(checked(metrics={"size": RATE, "accuracy": CHECKED}), id="primary"),
        pytest.param(
            checked(metrics={"size": CHECKED, "accuracy": RATE}, guards=[ACCURACY]), id="guard"
        ),
    ],
)
def test_a_metric_of_time_is_never_exact(p: RuleParameters) -> None:
    found = decide_screen(screen(3, a=1.04, b=1.04), p)
    assert (found.action, found.rule) == ("continue", "signflip-2")


@pytest.mark.parametrize(
    ("value", "decided"),
    [
        pytest.param({}, ("pass", "promoted"), id="all as in screen"),
        pytest.param({"h": 0.994}, ("stop", "overfit"), id="held-out loss"),
        pytest.param({"h": 0.995}, ("pass", "promoted"), id="held-out loss at its bound"),
        pytest.param({"h": 0.9}, ("stop", "not_confirmed"), id="no gain in all"),
        pytest.param({"accuracy": 0.9}, ("stop", "guard_failed"), id="guard lost"),
    ],
)
def test_one_block_decides_confirm(value: dict[str, float], decided: tuple[str, str]) -> None:
    p = checked(guards=[ACCURACY], held_out=["h"])
    screened = screen(3, a=1.10, b=1.10, accuracy=value.get("accuracy", 1.0))
    fresh = block("confirm", 0, **({"a": 1.10, "b": 1.10, "h": 1.10} | value))
    assert not exact.is_broken_by(fresh, screened, p)
    found = decide_confirm(screened, [fresh], p, 1)
    assert (found.n, found.action, found.result, found.rule) == (1, *decided, "exact-1")


def test_a_gain_beyond_belief_is_held() -> None:
    screened = screen(3, a=11.0, b=11.0)
    found = decide_confirm(screened, [block("confirm", 0, a=11.0, b=11.0)], checked(), 1)
    assert (found.action, found.result) == ("hold", "suspect_gain")


def test_confirm_is_broken_by_another_visible_value_only() -> None:
    p = checked(held_out=["h"])
    screened = screen(3, a=1.1, b=1.1)
    assert exact.is_broken_by(block("confirm", 0, a=1.1, b=1.2, h=1.1), screened, p)
    assert not exact.is_broken_by(block("confirm", 0, a=1.1, b=1.1, h=7.0), screened, p)
    assert not exact.is_broken_by(
        block("confirm", 1, a=1.1, b=1.2, h=1.1), screen(4, a=1.1, b=1.1), p
    )
