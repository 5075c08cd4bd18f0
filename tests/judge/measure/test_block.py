"""Blocks from facts, and what disturbs a run."""

import math

import msgspec
import pytest

from thermite.judge.measure.block import broken_constraints, measured, paired, values
from thermite.judge.measure.disturbance import flags
from thermite.schema.event import Check, Run
from thermite.schema.rule import ConstraintRule, MetricRule
from thermite.schema.stage import RunRecord
from thermite.schema.verdict import Arm

METRICS = {
    "speed": MetricRule(kind="rate", unit="", field=None, work={"a": "1000", "b": "5"}),
    "seconds": MetricRule(kind="time", unit="s", field=None, work={}),
    "accuracy": MetricRule(kind="check", unit="", field="acc", work={}),
}
RECORD = RunRecord(
    t_ns=50_000_000,
    utime_ns=1,
    stime_ns=1,
    nvcsw=0,
    nivcsw=900,
    minflt=0,
    majflt=0,
    maxrss_kib=1,
    cpus=[1],
    started_at="2026-01-01T00:00:00Z",
    suspended_ns=0,
)


def facts(
    cell: str, arm: Arm, t_ns: int, acc: str, *, position: int = 0, outcome: str = "ok"
) -> tuple[Run, Check]:
    run = Run(
        attempt=1,
        tries=1,
        stage="screen",
        block=0,
        cell=cell,
        arm=arm,
        position=position,
        record=msgspec.structs.replace(RECORD, t_ns=t_ns),
        flags=[],
        isolation=None,
        outcome=outcome,
        reason=None,
    )
    check = Check(
        attempt=1,
        tries=1,
        stage="screen",
        block=0,
        cell=cell,
        arm=arm,
        passed=True,
        fields={"acc": acc},
        reasons=[],
    )
    return run, check


def test_a_block_compares_the_arms_in_each_cell_and_metric() -> None:
    pairs = [
        facts("a", "champion", 40_000_000, "0.5"),
        facts("a", "candidate", 20_000_000, "0.25", position=1),
        facts("b", "candidate", 30_000_000, "0.5", position=2),
        facts("b", "champion", 10_000_000, "0.5", position=3),
    ]
    block = measured("screen", 4, pairs, METRICS)
    assert block.block == 4
    assert block.champion_first == {"a": True, "b": False}
    assert block.ln_ratio["speed"]["a"] == pytest.approx(math.log(2))
    assert block.ln_ratio["speed"]["b"] == pytest.approx(-math.log(3))
    assert block.ln_ratio["seconds"]["a"] == pytest.approx(-math.log(2))
    assert block.ln_ratio["accuracy"] == pytest.approx({"a": -math.log(2), "b": 0.0})


def test_a_failed_run_has_no_value() -> None:
    run, check = facts("a", "candidate", 1, "1", outcome="check_failed")
    assert values(run, check, METRICS) == {}


def test_a_check_belongs_to_the_run_before_it() -> None:
    (a, a_check), (b, _), (c, c_check) = (
        facts("a", "champion", 1, "1"),
        facts("a", "candidate", 2, "1", outcome="run_exited"),
        facts("a", "candidate", 3, "2"),
    )
    assert paired([a, a_check, b, c, c_check]) == [(a, a_check), (b, None), (c, c_check)]


def test_a_hard_constraint_is_held_against_each_run() -> None:
    rule = ConstraintRule(metric="accuracy", min=0.9, max=1.0, cells=["a"])
    pairs = [
        facts("a", "candidate", 10, "0.5"),
        facts("a", "candidate", 10, "0.95"),
        facts("b", "candidate", 10, "0.5"),
        facts("a", "champion", 10, "1.5"),
    ]
    assert broken_constraints(pairs, [rule], METRICS) == [
        ("candidate", "accuracy of cell a is 0.5, and the contract asks for at least 0.9"),
        ("champion", "accuracy of cell a is 1.5, and the contract asks for at most 1"),
    ]


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        pytest.param({}, [], id="900 involuntary switches are no reason"),
        pytest.param({"steal_ticks": 1}, ["steal"], id="one tick of 50 ms is 20 %"),
        pytest.param({"steal_ticks": 0}, [], id="no tick"),
        pytest.param({"steal_ticks": 1, "t_ns": 500_000_000}, ["steal"], id="exactly 2 %"),
        pytest.param({"steal_ticks": 1, "t_ns": 500_000_001}, [], id="a little below 2 %"),
        pytest.param({"suspended_ns": 1_000_000}, ["suspended"], id="suspended"),
        pytest.param({"suspended_ns": 999_999}, [], id="two readings of a clock apart"),
        pytest.param({"suspended_ns": 10**9, "steal_ticks": 9}, ["steal", "suspended"], id="both"),
    ],
)
def test_only_the_machine_disturbs_a_run(changed: dict[str, int], found: list[str]) -> None:
    assert flags(msgspec.structs.replace(RECORD, **changed)) == found
