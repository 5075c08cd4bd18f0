"""What the stages of a job are lent, and what they never see."""

from pathlib import Path

import msgspec

from tests.judge.job.simulated_desk import KIT, desk, verdict_of
from tests.requirement import shows
from tests.simulated_rig import program


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


@shows("K-085", "K-015")
def test_a_builds_command_is_passed_on_as_it_is(tmp_path: Path) -> None:
    command = ["sh", ".kit/bench/build.sh", "{kit:bench}", "{out}", "{nothing}"]
    kit = msgspec.structs.replace(KIT, build=msgspec.structs.replace(KIT.build, command=command))
    made = desk(tmp_path, program(name="new", ms=40), kit=kit)
    assert verdict_of(made).verdict != "crash_infra"
    assert next(ran for ran in made.rig.ran if ran.slot == "builder-0").argv == command
