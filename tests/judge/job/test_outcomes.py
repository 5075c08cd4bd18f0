"""Every row of the page "Kit manifest", Outcomes, for both arms; and the other verdicts."""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.judge.job.simulated_desk import KIT, SimulatedDesk, contract
from tests.requirement import shows
from tests.simulated_rig import SimulatedRig, program
from thermite.judge.job import judge
from thermite.schema.contract import Contract
from thermite.schema.event import Block, Build, Check, JudgeStarted, Run, Verdict
from thermite.schema.job import Held
from thermite.schema.kit import CheckMetric, RateMetric, TimeMetric

FAILURES = [
    pytest.param(
        program(build={"exit": 2, "log": "x.c:1: error\n"}),
        "invalid",
        "build: build failed (exit 2)\nx.c:1: error",
        id="K-149-K-154-build exits with an error",
    ),
    pytest.param(
        program(build={"missing": True, "log": "done"}),
        "invalid",
        "build: build outputs missing: out/bench\ndone",
        id="K-149-K-154-output missing",
    ),
    pytest.param(
        program(build={"refused": ["out/bench is a symbolic link"]}),
        "invalid",
        "build: build outputs refused: out/bench is a symbolic link",
        id="K-149-K-154-build outputs refused",
    ),
    pytest.param(
        program(build={"killed": "timeout"}),
        "crash_candidate",
        "build: build killed (timeout)",
        id="K-150-K-154-build out of time",
    ),
    pytest.param(
        program(build={"killed": "memory", "log": "cc1: killed"}),
        "crash_candidate",
        "build: build killed (memory)\ncc1: killed",
        id="K-150-build out of memory",
    ),
    pytest.param(
        program(build={"killed": "disk"}),
        "crash_candidate",
        "build: build killed (disk)",
        id="K-150-build out of disk",
    ),
    pytest.param(
        program(killed="timeout"),
        "crash_candidate",
        "killed: timeout",
        id="K-151-K-155-out of time",
    ),
    pytest.param(
        program(killed="memory"), "crash_candidate", "killed: memory", id="K-151-out of memory"
    ),
    pytest.param(program(killed="disk"), "crash_candidate", "killed: disk", id="K-151-out of disk"),
    pytest.param(
        program(exit=139, stderr="boom \n"),
        "crash_candidate",
        "exit 139: boom",
        id="K-151-K-155-run exits with an error",
    ),
    pytest.param(
        program(refused=["out/r is a hard link", "out/s is a socket"]),
        "invalid",
        "outputs refused: out/r is a hard link; out/s is a socket",
        id="K-152-K-155-run outputs refused",
    ),
    pytest.param(
        program(check={"line": {"pass": False, "reasons": ["row 3 is wrong", "so is 4"]}}),
        "invalid",
        "row 3 is wrong; so is 4",
        id="K-142-K-152-K-155-check fails",
    ),
    pytest.param(
        program(check={"line": {"pass": 1}}),
        "invalid",
        "check failed",
        id="K-141-K-142-not true",
    ),
    pytest.param(
        program(check={"stdout": "fine\n", "exit": 1, "stderr": "Traceback\n"}),
        "invalid",
        "check produced no result (exit 1): Traceback",
        id="K-144-no result",
    ),
    pytest.param(
        program(check={"killed": "timeout"}),
        "invalid",
        "check produced no result (exit 137):",
        id="D50-check out of time",
    ),
    pytest.param(
        program(check={"line": {"pass": True, "acc": 0}}),
        "invalid",
        "the check reported no acc above zero (got 0)",
        id="K-055-no value",
    ),
    pytest.param(
        program(check={"stdout": '{"pass": true, "acc": 1e999}\n'}),
        "invalid",
        "implausible: accuracy is not finite",
        id="K-057-K-152-driver refuses the value",
    ),
]
ACCURATE = contract(guards=[{"metric": "accuracy"}])


def desk(tmp_path: Path, new: object, old: object = None, **changed: object) -> SimulatedDesk:
    sources = {"old": old or program(name="old", ms=40), "new": new}
    plain: dict[str, object] = {"contract": ACCURATE, "rig": SimulatedRig(tmp_path / "rig")}
    return SimulatedDesk(tmp_path, sources, **(plain | changed))  # type: ignore[arg-type]


def verdict_of(made: SimulatedDesk, **changed: object) -> Verdict:
    verdict = judge(made.job(**changed), made.desk())
    assert isinstance(verdict, Verdict)
    assert made.rig.is_idle
    return verdict


@pytest.mark.parametrize(("failing", "kind", "why"), FAILURES)
def test_a_candidates_failure_is_its_own(
    tmp_path: Path, failing: bytes, kind: str, why: str
) -> None:
    made = desk(tmp_path, failing)
    verdict = verdict_of(made)
    assert (verdict.verdict, verdict.reasons) == (kind, [why])
    assert made.of(JudgeStarted) == [], "a build or warm-up that fails uses no k"


@pytest.mark.parametrize(("failing", "kind", "why"), FAILURES)
@shows("K-148")
def test_a_champions_failure_is_never_the_candidates(
    tmp_path: Path, failing: bytes, kind: str, why: str
) -> None:
    made = desk(tmp_path, program(name="new", ms=10), failing)
    verdict = verdict_of(made)
    assert kind != "crash_infra"
    assert verdict.verdict == "crash_infra"
    assert verdict.reasons[0].endswith(why)


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        pytest.param("1e999", "implausible: accuracy is not finite", id="not finite"),
        pytest.param("1e-999", "the check reported no acc above zero (got 0.0)", id="not above 0"),
    ],
)
@shows("K-058")
def test_a_rig_with_a_gpu_refuses_what_is_not_finite_or_not_above_zero(
    tmp_path: Path, printed: str, why: str
) -> None:
    line = f'{{"pass": true, "acc": {printed}}}\n'
    kit = msgspec.structs.replace(KIT, target="cuda-gpu")
    made = desk(tmp_path, program(check={"stdout": line}))
    verdict = judge(made.job(), replace(made.desk(), kit=kit, target="cuda-gpu"))
    assert isinstance(verdict, Verdict)
    assert (verdict.verdict, verdict.reasons) == ("invalid", [why])


def test_a_source_that_is_refused_is_invalid_and_remembered(tmp_path: Path) -> None:
    made = desk(tmp_path, [".kit is the kit's place", "a is another git repository"])
    for _ in range(2):
        verdict = verdict_of(made)
        assert verdict.verdict == "invalid"
        assert verdict.reasons == [
            "build: source refused: .kit is the kit's place; a is another git repository"
        ]
    assert [build.cached for build in made.of(Build) if build.arm == "candidate"] == [False, True]


@pytest.mark.parametrize(
    ("failing", "builds"),
    [
        pytest.param(program(build={"exit": 1}), 1, id="an error is remembered"),
        pytest.param(program(build={"missing": True}), 1, id="missing is remembered"),
        pytest.param(program(build={"refused": ["x"]}), 1, id="refused is remembered"),
        pytest.param(program(build={"killed": "timeout"}), 2, id="a limit is not"),
    ],
)
@shows("K-149", "K-150", "K-173")
def test_failed_builds_are_remembered_unless_a_limit_ended_them(
    tmp_path: Path, failing: bytes, builds: int
) -> None:
    made = desk(tmp_path, failing)
    first, second = verdict_of(made), verdict_of(made, attempt=2)
    assert (first.verdict, first.reasons) == (second.verdict, second.reasons)
    own = [ran for ran in made.rig.ran if ran.slot == "builder-0"]
    assert len(own) == 1 + builds


@shows("K-172")
def test_a_build_is_made_once_for_each_key(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=40))
    verdict_of(made)
    verdict_of(made, attempt=2)
    assert len([ran for ran in made.rig.ran if ran.slot == "builder-0"]) == 2


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


def test_a_candidate_that_fails_once_is_not_tried_again(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=30))
    made.rig.say_at = {number: {"name": "new"} for number in range(4, 20)}
    late = 9  # a run of the second block
    made.rig.say_at[late] = {"exit": 3, "stderr": "once"}
    made.rig.say_at[late + 1] = {"exit": 3, "stderr": "once"}
    verdict = verdict_of(made)
    (failed,) = [run for run in made.of(Run) if run.outcome != "ok"]
    blamed = "crash_candidate" if failed.arm == "candidate" else "crash_infra"
    assert verdict.verdict == blamed
    assert verdict.reasons[0].endswith("exit 3: once")
    assert made.of(Block)[-1].dropped == "run_exited"
    assert made.rig.runs == late + 1
    assert len(made.of(JudgeStarted)) == 1


def test_a_rig_that_fails_in_a_block_voids_it(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=30))
    made.rig.break_at = {11}
    verdict = verdict_of(made)
    assert verdict.verdict == "crash_infra"
    assert verdict.reasons == ["isolation: 1 processes of run survived"]
    assert [block.dropped for block in made.of(Block)][-1] == "infra"


def test_arms_are_never_measured_at_two_levels(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=30))
    made.rig.weaker_at = {9}
    verdict = verdict_of(made)
    assert verdict.verdict == "crash_infra"
    assert verdict.reasons == ["a run got isolation namespaces, and this job has none"]


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
    assert verdict.reasons == ["5 of 10 blocks were disturbed by the machine"]


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


@shows("K-200")
def test_a_kit_for_another_target_measures_nothing(tmp_path: Path) -> None:
    kit = msgspec.structs.replace(KIT, target="cuda-gpu")
    made = desk(tmp_path, program(name="new", ms=30), kit=kit)
    verdict = verdict_of(made)
    assert verdict.verdict == "crash_infra"
    assert verdict.reasons == ["kit tiny measures cuda-gpu, this rig has cpu"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        pytest.param(
            {"command": ["{build:out/bench}", "{foo:a}", "{out}"]},
            "unknown placeholder {foo}",
            id="K-087-placeholder",
        ),
        pytest.param(
            {"command": ["{build:../x}", "{out}"]},
            "placeholder {build:../x} leaves its folder",
            id="D26-climbs",
        ),
        pytest.param(
            {"copy": ["bench/none"]}, "kit run.copy: bench/none is not in the kit", id="K-108-copy"
        ),
    ],
)
def test_a_broken_kit_is_the_kits_fault(
    tmp_path: Path, changed: dict[str, object], why: str
) -> None:
    kit = msgspec.structs.replace(KIT, run=msgspec.structs.replace(KIT.run, **changed))
    verdict = verdict_of(desk(tmp_path, program(name="new", ms=30), kit=kit))
    assert (verdict.verdict, verdict.reasons) == ("crash_infra", [why])


@shows("K-056")
def test_a_rate_without_work_is_the_kits_fault(tmp_path: Path) -> None:
    kit = msgspec.structs.replace(KIT, cells=KIT.cells | {"small": {"n": 128, "work": "x"}})
    verdict = verdict_of(desk(tmp_path, program(name="new", ms=30), kit=kit))
    assert verdict.verdict == "crash_infra"
    assert verdict.reasons[0].startswith('kit metric speed: bad work "x" or time 0.0')


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


@shows("K-134")
def test_a_changed_store_is_noticed_before_the_next_run(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=30))
    verdict_of(made)
    key = made.of(Build)[-1].key
    stored = tmp_path / "store" / key / "files" / "out" / "bench"
    stored.chmod(0o600)
    stored.write_bytes(stored.read_bytes().replace(b"30", b"29"))
    runs = made.rig.runs
    verdict = verdict_of(made, attempt=2)
    assert verdict.verdict == "crash_infra"
    assert verdict.reasons == [f"build store tampered: {key} out/bench"]
    assert made.rig.runs == runs + 1, "the champion's warm-up run, and none of the candidate"


@shows("K-103")
def test_runs_see_neither_cell_nor_arm_nor_kit(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=30))
    verdict_of(made)
    runs = [ran for ran in made.rig.ran if ran.slot == "run-0"]
    words = ("small", "large", "held", "champion", "candidate", "check.py")
    assert not any(word in " ".join(ran.argv) for ran in runs for word in words)
    assert {frozenset(ran.env) for ran in runs} == {
        frozenset({"PATH", "LANG", "USER", "HOME", "TMPDIR"})
    }
    assert {ran.env["USER"] for ran in runs} == {"run"}
    assert len({len(" ".join(ran.argv)) for ran in runs}) == 1, "both arms: same path length"


@shows("K-093")
def test_model_files_are_lent_by_their_hash(tmp_path: Path) -> None:
    model = tmp_path / "weights"
    model.write_bytes(b"weights")
    wanted = f"{{models:{'e' * 64}}}"
    run = msgspec.structs.replace(KIT.run, command=["{build:out/bench}", wanted, "{out}"])
    check = msgspec.structs.replace(KIT.check, command=["check", wanted, "{out}"])
    kit = msgspec.structs.replace(KIT, run=run, check=check)
    made = desk(tmp_path, program(name="new", ms=40), kit=kit)
    made.models = {"e" * 64: model}
    seen: list[bytes] = []
    made.rig.watch = lambda ran: seen.append(Path(ran.argv[1]).read_bytes())
    assert verdict_of(made).verdict == "not_better"
    assert set(seen) == {b"weights"}
    slots = {ran.slot for ran in made.rig.ran if ran.argv[1].endswith("/models/" + "e" * 64)}
    assert slots == {"run-0", "check"}


@shows("K-101", "K-103", "K-105", "K-119")
def test_builds_and_checks_have_the_documents_environment(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=40))
    verdict_of(made)
    build = next(ran for ran in made.rig.ran if ran.slot == "builder-0")
    assert build.argv == ["sh", ".kit/bench/build.sh"]
    assert set(build.env) == {"PATH", "LANG", "USER", "HOME", "TMPDIR"}
    assert build.env["HOME"] == build.env["TMPDIR"]
    assert (build.limits.timeout_s, build.limits.processes) == (600, 512)
    check = next(ran for ran in made.rig.ran if ran.slot == "check")
    assert set(check.env) == {"PATH"}
    assert (check.limits.timeout_s, check.limits.rss_mib, check.limits.processes) == (
        120,
        None,
        None,
    )
    run = next(ran for ran in made.rig.ran if ran.slot == "run-0")
    assert (run.limits.timeout_s, run.limits.rss_mib, run.limits.processes) == (300, 1024, 256)


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


def test_stopping_leaves_the_attempt_open(tmp_path: Path) -> None:
    made = desk(tmp_path, program(name="new", ms=30))
    made.stopping = lambda: len(made.of(Block)) >= 3
    assert judge(made.job(), made.desk()) is None
    assert len(made.of(Block)) == 3
    assert made.rig.is_idle


def single(tmp_path: Path, source: bytes, wanted: Contract | None = None) -> Verdict:
    made = desk(
        tmp_path, source, contract=wanted or contract(objective=None, cells=[], held_out_cells=[])
    )
    return verdict_of(made, kind="single", champion=None)


def test_a_candidate_alone_is_valid_or_says_what_failed(tmp_path: Path) -> None:
    verdict = single(tmp_path, program(ms=50))
    assert (verdict.verdict, verdict.gain) == ("valid", None)
    assert list(verdict.cells) == ["small", "large", "held"]
    values = verdict.cells["large"]
    assert values["seconds"].candidate == pytest.approx(0.05, rel=0.02)
    assert values["speed"].champion is None
    assert values["accuracy"].candidate == 0.5


@pytest.mark.parametrize(("failing", "kind", "why"), FAILURES)
def test_a_candidate_alone_fails_as_beside_a_champion(
    tmp_path: Path, failing: bytes, kind: str, why: str
) -> None:
    verdict = single(tmp_path, failing)
    assert (verdict.verdict, verdict.reasons) == (kind, [why])
