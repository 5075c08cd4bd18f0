"""What is measured leads to the verdict, and the verdict says what was measured."""

from pathlib import Path

import msgspec
import pytest

from tests.judge.job.simulated_desk import KIT, contract, desk, verdict_of
from tests.requirement import shows
from tests.simulated_rig import SimulatedRig, program
from thermite.judge.job import judge
from thermite.schema.event import Block, Build, Check, JudgeStarted, Run, Verdict
from thermite.schema.job import Held
from thermite.schema.kit import CheckMetric, RateMetric, TimeMetric


@pytest.mark.parametrize(
    ("new", "kind"),
    [
        pytest.param(program(name="new", ms=30), "promoted", id="faster everywhere"),
        pytest.param(program(name="new", ms=40), "not_better", id="the same"),
        pytest.param(program(name="new", ms=39), "not_better", id="too small a gain"),
        pytest.param(program(name="new", ms=50), "regressed", id="slower"),
        pytest.param(
            program(name="new", ms={"128": 20, "256": 44, "192": 30}),
            "guard_failed",
            id="one cell pays",
        ),
        pytest.param(
            program(name="new", ms={"128": 20, "256": 20, "192": 44}),
            "overfit",
            id="the held-out cell pays",
        ),
        pytest.param(
            program(name="new", ms={"128": 38, "256": 38, "192": 40}),
            "not_confirmed",
            id="nothing on the held-out cell",
        ),
    ],
)
def test_times_lead_to_the_verdict(tmp_path: Path, new: bytes, kind: str) -> None:
    made = desk(tmp_path, new)
    verdict = verdict_of(made)
    assert verdict.verdict == kind, verdict.reasons
    assert len(made.of(JudgeStarted)) == 1


def test_a_promotion_says_what_was_measured(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=30))
    verdict = verdict_of(made)
    assert verdict.gain == pytest.approx(1 / 3, abs=0.01)
    assert verdict.interval is not None
    low, high = (bound or 0.0 for bound in verdict.interval)
    assert 0.3 < low < (verdict.gain or 0.0) < high < 0.36
    assert list(verdict.cells) == ["small", "large", "held"]
    assert verdict.cells["small"]["speed"].ratio == pytest.approx(4 / 3, abs=0.02)
    assert verdict.cells["held"]["accuracy"].candidate == 0.5
    assert verdict.marks == []


@pytest.mark.parametrize(
    ("ms", "marks"),
    [
        pytest.param(38.5, ["within code-placement luck"], id="4 % with an interval below 3 %"),
        pytest.param(30, [], id="33 %"),
    ],
)
def test_a_small_gain_on_a_cpu_is_marked(tmp_path: Path, ms: float, marks: list[str]) -> None:
    rig = SimulatedRig(tmp_path / "rig", noise=0.016)
    verdict = verdict_of(desk(tmp_path, program(name="new", ms=ms), rig=rig))
    assert (verdict.verdict, verdict.marks) == ("promoted", marks)


def test_a_secondary_objective_is_reported_with_its_interval(tmp_path: Path) -> None:
    objective = {"primary": {"metric": "speed"}, "secondary": [{"metric": "accuracy"}]}
    worse = {"line": {"pass": True, "acc": 0.45}}
    new = program(name="new", ms=30, check=worse)
    found = verdict_of(desk(tmp_path, new, contract=contract(objective=objective)))
    assert found.verdict == "promoted"
    # The check prints the same number in each run, so the interval has no width.
    assert "secondary accuracy: -10 % [-10 %, -10 %]" in found.notes


def test_no_held_out_cells_are_said_aloud(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=30), contract=contract(held_out_cells=[]))
    verdict = verdict_of(made)
    note = "no held-out cells: this gain is only shown on what the agents saw"
    assert note in verdict.notes


@pytest.mark.parametrize(
    ("level", "said"),
    [
        pytest.param("none", True, id="none"),
        pytest.param("users", False, id="users"),
    ],
)
def test_runs_as_the_judges_own_user_are_said_aloud(tmp_path: Path, level: str, said: bool) -> None:
    rig = SimulatedRig(tmp_path / "rig", level=level)  # type: ignore[arg-type]
    verdict = verdict_of(desk(tmp_path, program(name="new", ms=40), rig=rig))
    assert any(note.startswith("isolation: none") for note in verdict.notes) is said


def test_equal_bytes_are_not_measured_and_use_no_k(tmp_path: Path) -> None:
    same = program(ms=40)
    made = desk(tmp_path, same, same)
    verdict = verdict_of(made)
    assert verdict.verdict == "not_better"
    assert verdict.reasons == ["the build is byte-identical to the champion's"]
    assert made.rig.runs == 0
    assert made.of(JudgeStarted) == []


def test_the_same_content_is_answered_with_the_attempt_that_judged_it(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=40))
    verdict_of(made)
    digest = made.of(Build)[-1].outputs_digest
    made.sources["again"] = made.sources["new"]
    runs = made.rig.runs
    again = verdict_of(made, candidate="again", attempt=7, judged_outputs={digest: 1})
    assert (again.verdict, again.reasons) == (
        "duplicate",
        ["the same build outputs were judged as attempt 1"],
    )
    assert made.rig.runs == runs


def test_a_try_again_is_no_duplicate_of_itself(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=30))
    verdict_of(made)
    digest = made.of(Build)[-1].outputs_digest
    assert verdict_of(made, tries=2, judged_outputs={digest: 1}).verdict == "promoted"


@pytest.mark.parametrize(
    ("constraint", "kind"),
    [
        pytest.param({"metric": "seconds", "max": 0.02}, "crash_infra", id="champion too"),
        pytest.param({"metric": "seconds", "max": 0.05}, "constraint_failed", id="candidate"),
        pytest.param({"metric": "seconds", "max": 0.07}, "regressed", id="kept"),
    ],
)
def test_a_hard_constraint_holds_for_every_run(
    tmp_path: Path, constraint: dict[str, object], kind: str
) -> None:
    wanted = contract(hard_constraints=[constraint])
    made = desk(tmp_path, program(name="new", ms=60), contract=wanted)
    verdict = verdict_of(made)
    assert verdict.verdict == kind
    if kind == "constraint_failed":
        assert verdict.reasons[0].startswith("seconds of cell small is 0.0")
        assert verdict.reasons[0].endswith("and the contract asks for at most 0.05")


def test_disturbed_blocks_do_not_count(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=30))
    made.rig.disturb = {5: {"steal_ticks": 1}, 13: {"suspended_ns": 10**9}}
    assert verdict_of(made).verdict == "promoted"
    dropped = [block.dropped for block in made.of(Block)]
    assert dropped[:3] == ["steal", None, "suspended"]
    assert all(reason is None for reason in dropped[3:])


def test_a_rig_that_disturbs_too_many_blocks_is_noisy(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=30))
    made.rig.disturb = {number: {"steal_ticks": 1} for number in range(4, 400, 8)}
    verdict = verdict_of(made)
    assert verdict.verdict == "noisy_rig"
    assert verdict.reasons == ["5 of 10 blocks were disturbed by the machine (steal)"]


def test_short_runs_are_the_kits_trouble(tmp_path: Path) -> None:
    rig = SimulatedRig(tmp_path / "rig", probe_ns=10_000_000)
    verdict = verdict_of(desk(tmp_path, program(name="new", ms=40), rig=rig))
    assert verdict.verdict == "crash_infra"
    (why,) = verdict.reasons
    assert why.startswith("cell small is too short: startup is 25.")
    assert why.endswith(" % of a run; raise its work")


def test_a_run_no_longer_than_its_start_can_be_allowed(tmp_path: Path) -> None:
    rig = SimulatedRig(tmp_path / "rig", probe_ns=90_000_000)
    wanted = contract(judging={"startup_share_max": 1})
    made = desk(tmp_path, program(name="new", ms=30), rig=rig, contract=wanted)
    verdict = verdict_of(made)
    assert verdict.verdict == "promoted"
    assert "startup is 100 % of a run in cell small" in verdict.notes


def test_a_large_share_of_startup_is_noted(tmp_path: Path) -> None:
    rig = SimulatedRig(tmp_path / "rig", probe_ns=2_000_000)
    verdict = verdict_of(desk(tmp_path, program(name="new", ms=30), rig=rig))
    assert verdict.verdict == "promoted"
    assert any(note.startswith("startup is 5.7") for note in verdict.notes)
    assert any(note.startswith("gain_net: without startup the gain is") for note in verdict.notes)


def test_a_gain_beyond_belief_waits_for_a_person(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=3))
    held = judge(made.job(), made.desk())
    assert isinstance(held, Held)
    assert held.reason == "suspect_gain"
    assert held.promotion.verdict == "promoted"
    runs = made.rig.runs
    released = judge(made.job(history=made.history, released=True), made.desk())
    assert released == held.promotion
    assert made.rig.runs == runs


@pytest.mark.parametrize(
    ("ms", "hold"),
    [
        pytest.param(3, "suspect_gain", id="R9-one of seven cells"),
        pytest.param(5, None, id="R9-below the bound"),
    ],
)
def test_one_of_seven_cells_does_not_buy_the_whole(
    tmp_path: Path, ms: float, hold: str | None
) -> None:
    cells = {f"c{n}": {"n": n, "work": 1000} for n in range(1, 8)}
    times = dict.fromkeys(map(str, range(1, 8)), 40.0) | {"4": ms}
    kit = msgspec.structs.replace(KIT, cells=cells)
    wanted = contract(cells=list(cells), held_out_cells=[])
    made = desk(tmp_path, program(name="new", ms=times), kit=kit, contract=wanted)
    answer = judge(made.job(), made.desk())
    if hold is None:
        assert isinstance(answer, Verdict)
        assert answer.verdict == "promoted"
        return
    assert isinstance(answer, Held)
    assert answer.reason == hold
    (why,) = answer.promotion.reasons
    assert why.startswith(
        "held for suspect_gain: cell c4 by itself gained more than 10 times"
        " (judging.suspect_gain): 13."
    )


@shows("K-044", "K-051")
def test_a_time_needs_nothing_of_its_cells(tmp_path: Path) -> None:
    kit = msgspec.structs.replace(KIT, cells={"a": {}, "b": {}}, metrics={"seconds": TimeMetric()})
    faster = {"primary": {"metric": "seconds", "direction": "min"}}
    wanted = contract(cells=["a", "b"], held_out_cells=[], objective=faster)
    verdict = verdict_of(desk(tmp_path, program(name="new", ms=30), kit=kit, contract=wanted))
    assert verdict.verdict == "promoted", verdict.reasons
    assert verdict.gain == pytest.approx(1 / 3, abs=0.01)


@shows("D39")
def test_a_metric_that_the_contract_does_not_name_is_not_computed(tmp_path: Path) -> None:
    unfit = {"unfit": RateMetric(unit="1/s", work="nothing"), "none": CheckMetric(field="none")}
    kit = msgspec.structs.replace(KIT, metrics=KIT.metrics | unfit)
    verdict = verdict_of(desk(tmp_path, program(name="new", ms=40), kit=kit))
    assert verdict.verdict == "not_better", verdict.reasons


@shows("K-140")
def test_a_checks_exit_code_is_not_asked(tmp_path: Path) -> None:
    verdict = verdict_of(desk(tmp_path, program(name="new", ms=40, check={"exit": 1})))
    assert verdict.verdict == "not_better", verdict.reasons


@shows("K-042")
def test_held_out_cells_are_not_run_before_confirm(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=30))
    verdict_of(made)
    assert {run.cell for run in made.of(Run) if run.stage == "screen"} == {"small", "large"}
    assert {run.cell for run in made.of(Run) if run.stage == "confirm"} == {
        "small",
        "large",
        "held",
    }


def test_one_transaction_a_block(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=30))
    verdict_of(made)
    blocks = [part for part in made.appended if any(isinstance(fact, Block) for fact in part)]
    assert len(blocks) == len(made.of(Block))
    assert all(
        [type(fact).__name__ for fact in part[-2:]] == ["Block", "Decision"]
        and all(isinstance(fact, Run | Check) for fact in part[:-2])
        for part in blocks
    )


def test_the_started_event_holds_every_parameter(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=30))
    verdict_of(made, k=201)
    (started,) = made.of(JudgeStarted)
    assert (started.k, started.alpha_k) == (201, pytest.approx(1.25e-5))
    assert started.params["min_effect"] == 0.03
    assert started.params["judging"]["reset"] == "spin"
    assert started.params["metrics"]["speed"]["work"]["large"] == "4000"
    assert set(started.params["startup_share"]) == {"small", "large"}
