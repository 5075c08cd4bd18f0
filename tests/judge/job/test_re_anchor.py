"""The headline gain, and the short selftest."""

from pathlib import Path

import pytest

from tests.judge.job.simulated_desk import SimulatedDesk, contract
from tests.simulated_rig import SimulatedRig, program
from thermite.errors import InfrastructureError
from thermite.judge.job import re_anchor, selftest
from thermite.judge.verdict.noise import grade, robust_sd
from thermite.schema.event import Block, Decision, JudgeStarted, Run


def desk(tmp_path: Path, new: bytes, **rig: object) -> SimulatedDesk:
    sources = {"old": program(name="old", ms=40), "new": new}
    made = SimulatedRig(tmp_path / "rig", **rig)  # type: ignore[arg-type]
    return SimulatedDesk(tmp_path, sources, contract(), made)


def test_the_claim_is_measured_over_20_fresh_blocks(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=20))
    claim = re_anchor(made.job(kind="re_anchor", attempt=None), made.desk())
    assert claim.blocks == 20
    assert claim.gain == pytest.approx(1.0, abs=0.01)
    assert claim.interval is not None
    assert all(bound == pytest.approx(1.0, abs=0.02) for bound in claim.interval)
    assert made.of(JudgeStarted) == [], "a re-anchor uses no k"
    decisions = made.of(Decision)
    assert [d.action for d in decisions] == ["continue"] * 19 + ["stop"]
    assert {d.attempt for d in decisions} == {None}
    assert {run.cell for run in made.of(Run)} == {"small", "large", "held"}
    assert made.rig.is_idle


@pytest.mark.parametrize(
    ("new", "why"),
    [
        pytest.param(
            program(build={"exit": 1}),
            "not possible: 6e6577" + "0" * 34 + ": build: build failed (exit 1)",
            id="build",
        ),
        pytest.param(program(exit=3), "not possible: exit 3:", id="run"),
    ],
)
def test_where_it_is_not_possible_the_claim_says_why(tmp_path: Path, new: bytes, why: str) -> None:
    made = desk(tmp_path, new)
    claim = re_anchor(made.job(kind="re_anchor", attempt=None), made.desk())
    assert (claim.gain, claim.interval, claim.reason) == (None, None, why)


def test_blocks_that_the_machine_disturbs_cost_a_claim_time_alone(tmp_path: Path) -> None:
    """It was given up after the tenth, and nobody said why."""
    made = desk(tmp_path, program(name="new", ms=20))
    made.rig.disturb = {number: {"steal_ticks": 1} for number in range(9, 4000, 12)}
    claim = re_anchor(made.job(kind="re_anchor", attempt=None), made.desk())
    assert (claim.blocks, claim.reason) == (20, None)
    assert sum(block.dropped == "steal" for block in made.of(Block)) > 5


def test_where_nearly_all_are_disturbed_there_is_no_claim(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=20))
    made.rig.disturb = {number: {"steal_ticks": 1} for number in range(9, 4000)}
    claim = re_anchor(made.job(kind="re_anchor", attempt=None), made.desk())
    assert claim.reason == ("not possible: 10 of 10 blocks were disturbed by the machine (steal)")


@pytest.mark.parametrize(
    ("noise", "graded"),
    [
        pytest.param(0.0005, "quiet", id="quiet"),
        pytest.param(0.01, "usable", id="usable"),
        pytest.param(0.2, "noisy", id="noisy"),
    ],
)
def test_a_selftest_grades_the_rig_by_its_own_noise(
    tmp_path: Path, noise: float, graded: str
) -> None:
    made = desk(tmp_path, program(ms=40), noise=noise)
    found = selftest(made.job(candidate="old", attempt=None), made.desk(), nonce="0" * 64)
    assert found.grade == graded
    assert len(found.blocks) == 8
    assert found.figures["robust_sd"] == pytest.approx(robust_sd(found.blocks))
    assert found.figures["startup_share"] == pytest.approx(0.5 / 40, rel=0.5)
    assert made.appended == [], "only the event that sums it up is for the ledger"
    assert len([ran for ran in made.rig.ran if ran.slot == "builder-0"]) == 1


def test_a_selftest_names_each_cell_that_starting_up_is_much_of(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms={"128": 4, "256": 400}))
    figures = selftest(made.job(attempt=None), made.desk(), nonce="0" * 64).figures
    named = {name: value for name, value in figures.items() if " of " in name}
    assert list(named) == ["startup_share of small", "run_s of small"]
    assert named["run_s of small"] == pytest.approx(0.004, rel=0.5)


def test_disturbed_blocks_of_a_selftest_are_made_again(tmp_path: Path) -> None:
    made = desk(tmp_path, program(ms=40))
    made.rig.disturb = {5: {"steal_ticks": 1}, 9: {"steal_ticks": 1}}
    found = selftest(made.job(candidate="old", attempt=None), made.desk(), nonce="0" * 64)
    assert len(found.blocks) == 8
    assert found.figures["discard_share"] == pytest.approx(0.2)


def test_a_rig_that_never_stands_still_is_noisy_in_bounded_time(tmp_path: Path) -> None:
    made = desk(tmp_path, program(ms=40))
    made.rig.disturb = {number: {"steal_ticks": 9} for number in range(1000)}
    found = selftest(made.job(candidate="old", attempt=None), made.desk(), nonce="0" * 64)
    assert (found.grade, found.blocks) == ("noisy", [])
    assert made.rig.runs < 110


def test_a_selftest_that_fails_is_the_rigs_trouble(tmp_path: Path) -> None:
    made = desk(tmp_path, program(exit=1, stderr="no"))
    with pytest.raises(InfrastructureError, match=r"the selftest failed in cell .*: exit 1: no"):
        selftest(made.job(candidate="new", attempt=None), made.desk(), nonce="0" * 64)


@pytest.mark.parametrize(
    ("sd", "graded"),
    [
        pytest.param(0.006, "quiet", id="at 0.6 %"),
        pytest.param(0.0061, "usable", id="above"),
        pytest.param(0.02, "usable", id="at 2 %"),
        pytest.param(0.0201, "noisy", id="above 2 %"),
        pytest.param(None, "noisy", id="not measured"),
    ],
)
def test_grades_have_the_documents_borders(sd: float | None, graded: str) -> None:
    assert grade(sd) == graded
