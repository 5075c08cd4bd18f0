"""Every row of the page "Kit manifest", Outcomes, for both arms and for one alone.

With them: failures that are the rig's or the kit's own.
"""

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from tests.judge.job.simulated_desk import KIT, contract, desk, verdict_of
from tests.requirement import shows
from tests.simulated_rig import program
from thermite.judge.job import judge
from thermite.schema.contract import Contract
from thermite.schema.event import Block, Build, JudgeStarted, Run, Verdict

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
    pytest.param(
        program(check={"stdout": '{"pass": true, "acc": 1' + "0" * 400 + "}\n"}),
        "invalid",
        "implausible: accuracy is not finite",
        id="D38-an integer beyond floating point",
    ),
]


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


@pytest.mark.parametrize(
    ("killed", "note"),
    [
        pytest.param({"killed": "timeout"}, "run.timeout_s is 7", id="C8-run timeout"),
        pytest.param({"killed": "memory"}, "run.rss_mib is 5", id="C8-run memory"),
        pytest.param({"killed": "disk"}, "run.disk_mib is 3", id="C8-run disk"),
        pytest.param(
            {"build": {"killed": "timeout"}}, "build.timeout_s is 70", id="C8-build timeout"
        ),
        pytest.param(
            {"build": {"killed": "disk", "log": "y"}}, "build.disk_mib is 30", id="C8-build disk"
        ),
        pytest.param({"exit": 1, "stderr": "killed: timeout"}, None, id="C8-only said so"),
    ],
)
def test_the_limit_that_ended_it_is_named_with_its_value(
    tmp_path: Path, killed: dict[str, object], note: str | None
) -> None:
    made = desk(tmp_path, program(**killed))
    made.kit = msgspec.structs.replace(
        KIT,
        build=msgspec.structs.replace(KIT.build, timeout_s=70, disk_mib=30),
        run=msgspec.structs.replace(KIT.run, timeout_s=7, rss_mib=5, disk_mib=3),
    )
    notes = [one for one in verdict_of(made).notes if one.startswith("the kit's limit")]
    assert notes == ([] if note is None else [f"the kit's limit: {note}"])
