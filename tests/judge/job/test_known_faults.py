"""Rows of specs/known-faults.md, sections 4 and 5: numbers that are not of the thing itself."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.judge.job.simulated_desk import contract, desk, verdict_of
from tests.simulated_rig import SimulatedRig, program
from thermite.judge.job import judge
from thermite.report.selftest import selftest_lines
from thermite.schema.contract import RepoAt
from thermite.schema.event import Block, RigSelftest, Run, Verdict

SAME = program(name="new", ms=40)
MS = 1_000_000


def drifting(run: int, draw: random.Random) -> float:
    """30 % slower over 150 runs: a machine that heats up."""
    return 40 * (1 + 0.30 * min(run, 150) / 150) * (1 + draw.gauss(0, 0.002))


def bursting(run: int, draw: random.Random) -> float:
    """A burner that comes and goes between blocks: every third stretch of ten runs is slow."""
    return (60 if run // 10 % 3 == 0 else 40) * (1 + draw.gauss(0, 0.002))


def two_peaked(run: int, draw: random.Random) -> float:
    """Cores of two speeds: a run gets either."""
    del run
    return draw.choice((40, 60)) * (1 + draw.gauss(0, 0.002))


def waiting(run: int, draw: random.Random) -> float:
    """Page faults and a busy core: a quarter of the runs wait five times as long as they work."""
    del run
    return draw.choice((40, 40, 40, 200)) * (1 + draw.gauss(0, 0.002))


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param(drifting, id="T1-drift"),
        pytest.param(bursting, id="T1-a burner"),
        pytest.param(waiting, id="T2-waiting"),
        pytest.param(two_peaked, id="T5-two core kinds"),
    ],
)
def test_what_the_machine_does_to_equal_programs_is_no_verdict_on_them(
    tmp_path: Path, noise: Callable[[int, random.Random], float]
) -> None:
    for seed in range(6):
        draw = random.Random(seed)
        rig = SimulatedRig(tmp_path / f"rig-{seed}", seed=seed)
        rig.disturb = {run: {"t_ns": round(noise(run, draw) * MS)} for run in range(1, 600)}
        made = desk(tmp_path / str(seed), SAME, rig=rig)
        verdict = verdict_of(made, order_seed=f"{seed:064x}")
        assert verdict.verdict in {"not_better", "not_confirmed", "guard_failed"}, verdict.reasons
        # Nothing is dropped for what it measured.
        assert [b.dropped for b in made.of(Block) if b.dropped] == []


@pytest.mark.parametrize(
    ("changed", "dropped"),
    [
        pytest.param({"suspended_ns": 60_000 * MS}, "suspended", id="T4-a pause of 60 s"),
        pytest.param({"started_at": "2026-01-01T17:00:00Z"}, None, id="T4-clock 7 h back"),
        pytest.param({"started_at": "2027-01-01T00:00:00Z"}, None, id="T4-clock a year on"),
    ],
)
def test_a_clock_that_steps_changes_no_duration(
    tmp_path: Path, changed: dict[str, Any], dropped: str | None
) -> None:
    made = desk(tmp_path, program(name="new", ms=30))
    made.rig.disturb = {7: changed}
    assert verdict_of(made).verdict == "promoted"
    assert {b.dropped for b in made.of(Block)} - {None} == ({dropped} if dropped else set())


@pytest.mark.parametrize("ms", [pytest.param(30, id="T6-threads by the machine")])
def test_both_arms_are_told_the_same_of_the_machine(tmp_path: Path, ms: int) -> None:
    made = desk(tmp_path, program(name="new", ms=ms))
    verdict_of(made)
    timed = [ran for ran in made.rig.ran if ran.timed]
    told = {tuple(sorted((k, len(v)) for k, v in ran.env.items())) for ran in timed}
    assert len(told) == 1
    cpus = {tuple(run.record.cpus) for run in made.of(Run) if run.record}
    assert cpus == {(1,)}


@pytest.mark.parametrize(
    ("metric", "direction", "ms", "kind"),
    [
        pytest.param("speed", "max", 36, "promoted", id="T7-rate up"),
        pytest.param("speed", "max", 44, "regressed", id="T7-rate down"),
        pytest.param("speed", "min", 44, "promoted", id="T7-rate that shall fall"),
        pytest.param("seconds", "min", 36, "promoted", id="T7-time down"),
        pytest.param("seconds", "min", 44, "regressed", id="T7-time up"),
        pytest.param("seconds", "max", 44, "promoted", id="T7-time that shall grow"),
    ],
)
def test_each_metric_acts_by_its_own_direction(
    tmp_path: Path, metric: str, direction: str, ms: int, kind: str
) -> None:
    asked = contract(objective={"primary": {"metric": metric, "direction": direction}})
    verdict = verdict_of(desk(tmp_path, program(name="new", ms=ms), contract=asked))
    assert verdict.verdict == kind
    assert (verdict.gain or 0.0) * (1 if kind == "promoted" else -1) > 0.05


@pytest.mark.parametrize("metric", [pytest.param("seconds", id="T7-guard")])
def test_a_guard_of_the_other_direction_is_kept_by_its_own(tmp_path: Path, metric: str) -> None:
    asked = contract(
        objective={"primary": {"metric": "accuracy"}},
        guards=[{"metric": metric, "direction": "min", "allowed_loss": 0.02}],
    )
    better = {"line": {"pass": True, "acc": 0.6}}
    for ms, kind in ((44, "guard_failed"), (36, "promoted")):
        made = desk(tmp_path / str(ms), program(name="n", ms=ms, check=better), contract=asked)
        assert verdict_of(made).verdict == kind


@pytest.mark.parametrize(
    ("at", "kind"),
    [
        pytest.param({"exit": 3}, "crash_candidate", id="T9-a cell that crashes"),
        pytest.param({"check": {"line": {"pass": False}}}, "invalid", id="T9-a wrong cell"),
        pytest.param({"refused": ["out/a is a link"]}, "invalid", id="R3-no output in one cell"),
    ],
)
def test_a_cell_that_was_not_measured_is_no_number(
    tmp_path: Path, at: dict[str, Any], kind: str
) -> None:
    made = desk(tmp_path, program(name="new", ms=10, at={"256": at}))
    verdict = verdict_of(made)
    assert (verdict.verdict, verdict.gain, verdict.interval) == (kind, None, None)
    assert all(
        one.ratio is None or one.candidate is not None
        for metrics in verdict.cells.values()
        for one in metrics.values()
    )
    assert "large" not in verdict.cells


@pytest.mark.parametrize("ms", [pytest.param(0.3, id="T13-below a millisecond")])
def test_a_run_that_is_mostly_start_up_is_the_kits_trouble(tmp_path: Path, ms: float) -> None:
    made = desk(tmp_path, program(name="new", ms=ms / 2), program(name="old", ms=ms))
    made.rig.probe_ns = 250_000
    verdict = judge(made.job(), made.desk())
    assert isinstance(verdict, Verdict)
    assert verdict.verdict == "crash_infra"
    assert "is too short: startup is" in verdict.reasons[0]
    assert made.of(Block) == []


FIGURES = ("robust_sd", "q95", "kurtosis", "lag_1", "order_effect", "discard_share")


@pytest.mark.parametrize("names", [pytest.param(FIGURES, id="T14-nothing could be read")])
def test_what_a_selftest_could_not_see_is_unknown_and_not_fine(names: tuple[str, ...]) -> None:
    told: dict[str, float | None] = dict.fromkeys(names)
    blind = RigSelftest(
        mode="full",
        kit=RepoAt(repo="k", commit="0" * 40),
        nonce="0" * 64,
        order_seed="0" * 64,
        blocks=[],
        figures=told,
        grade="noisy",
        sees=None,
        biased=False,
        insensitive=True,
    )
    lines = "\n".join(selftest_lines(blind))
    assert lines.count("unknown") == 6
    assert "0.00 %" not in lines
