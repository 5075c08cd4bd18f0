"""A full selftest: its figures, its known gain, and what only two running can show."""

from pathlib import Path

import pytest

from tests.judge.job.simulated_desk import SimulatedDesk, contract
from tests.simulated_rig import SimulatedRig, program
from thermite.judge.job import selftest
from thermite.judge.job.selftest import Mode
from thermite.judge.verdict import noise
from thermite.schema.event import RigSelftest, Run


def rig_tested(
    tmp_path: Path,
    *,
    mode: Mode = "full",
    before: RigSelftest | None = None,
    old: bytes | None = None,
    metric: str = "speed",
    **rig: object,
) -> tuple[RigSelftest, SimulatedDesk, list[Run]]:
    sources = {"old": old or program(name="old", ms=40)}
    made = SimulatedRig(tmp_path / "rig", **rig)  # type: ignore[arg-type]
    asked = contract(cells=["small"], objective={"primary": {"metric": metric}})
    desk = SimulatedDesk(tmp_path, sources, asked, made)
    runs: list[Run] = []
    job = desk.job(candidate="old", attempt=None)
    found = selftest(job, desk.desk(), nonce="0" * 64, mode=mode, before=before, kept=runs.extend)
    assert made.is_idle
    return found, desk, runs


def test_a_full_selftest_tells_what_the_noise_is_like(tmp_path: Path) -> None:
    found, desk, runs = rig_tested(tmp_path, noise=0.004)
    assert (found.mode, found.grade, len(found.blocks)) == ("full", "quiet", 40)
    assert (found.biased, found.insensitive) == (False, False)
    told = found.figures
    assert told["robust_sd"] == pytest.approx(0.0057, rel=0.5)
    assert abs(told["lag_1"] or 9) < 0.5
    assert -1.5 < (told["kurtosis"] or 9) < 3
    assert told["q95"] == sorted(map(abs, found.blocks))[37]
    assert (told["wake_s"], told["wake_sd_s"]) == (0.0005, 0.0)
    # Every counted block's runs are heard, those of the known gain too: 40, then 6 and 10.
    assert len(runs) == 2 * (40 + 6 + 10)
    assert desk.appended == []


def test_a_rig_on_which_a_known_gain_is_missed_twice_is_insensitive(tmp_path: Path) -> None:
    # Every block after the 40 is disturbed: nothing can be shown there.
    late = {number: {"steal_ticks": 9} for number in range(2 + 80, 4000)}
    found, _, _ = rig_tested(tmp_path, disturb=late)
    assert found.insensitive


def test_one_lean_is_chance_and_two_running_are_bias(tmp_path: Path) -> None:
    fair, _, runs = rig_tested(tmp_path / "fair", mode="short")
    assert not noise.looks_biased(fair.figures)
    # The coin's order is the same again, so the champion's runs are known: they lose 10 %.
    champions = [2 + n for n, run in enumerate(runs) if run.arm == "champion"]
    slow = {run: {"t_ns": 44_000_000} for run in champions}
    lean, _, _ = rig_tested(tmp_path / "lean", mode="short", disturb=slow, before=fair)
    assert noise.looks_biased(lean.figures)
    assert not lean.biased
    again, _, _ = rig_tested(tmp_path / "again", mode="short", disturb=slow, before=lean)
    assert again.biased
    mended, _, _ = rig_tested(tmp_path / "mended", mode="short", before=again)
    assert not mended.biased


def test_a_value_of_the_check_is_a_known_gain_too(tmp_path: Path) -> None:
    found, _, _ = rig_tested(tmp_path, metric="accuracy")
    assert (found.grade, found.insensitive) == ("quiet", False)
