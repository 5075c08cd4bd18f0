"""Real git, cc and processes on a spawner of this process's own, at level none.

The kit sums the numbers below n; its driver and its check are the kit's own. Times are
noisy here, so gains are large and budgets wide.
"""

import msgspec
import pytest

from tests.judge.real.workshop import FAST, SLOW, Workshop, doing, wanted, write
from tests.requirement import shows
from thermite.judge.job import judge, re_anchor, selftest
from thermite.kit.export import tree_of
from thermite.kit.folder import commit_of_folder
from thermite.kit.manifest import load_kit
from thermite.schema.event import Block, Build, Check, Run, Verdict
from thermite.schema.job import Revision

pytestmark = pytest.mark.measures


def test_a_candidate_that_is_eight_times_as_fast_is_promoted(workshop: Workshop) -> None:
    verdict = workshop.judged(FAST)
    assert verdict.verdict == "promoted", verdict.reasons
    assert verdict.gain is not None
    assert verdict.gain > 0.5
    runs, checks = workshop.of(Run), workshop.of(Check)
    assert len(runs) == len(checks)
    assert {run.outcome for run in runs} == {"ok"}
    assert all(run.isolation.proof.survivors == 0 for run in runs)
    assert all(run.record.t_ns > 0 for run in runs)
    assert sum(b.dropped is None for b in workshop.of(Block) if b.stage == "confirm") >= 10


def test_a_slower_candidate_regresses(workshop: Workshop) -> None:
    slower = SLOW.replace("total += i;", "total += i - 1, total += 1;")
    verdict = workshop.judged(slower)
    # On a very noisy rig "not better" may be clear before "slower" is.
    assert verdict.verdict in {"regressed", "not_better"}, verdict.reasons


def test_a_comment_changes_no_byte_of_the_build(workshop: Workshop) -> None:
    verdict = workshop.judged("/* fast now */" + SLOW)
    assert verdict.verdict == "not_better"
    assert verdict.reasons == ["the build is byte-identical to the champion's"]
    assert workshop.of(Run) == []


@pytest.mark.parametrize(
    ("source", "kind", "why"),
    [
        pytest.param(
            "int sum(",
            "invalid",
            "build: build failed (exit 1)\n",
            id="does not compile",
        ),
        pytest.param(
            doing("exit(3);"),
            "crash_candidate",
            "exit 3:",
            id="exits with an error",
        ),
        pytest.param(
            doing('write(2, "\\033[31mno\\n", 8); abort();'),
            "crash_candidate",
            "exit 134: \\x1b[31mno",
            id="aborts with a coloured word",
        ),
        pytest.param(
            "#include <signal.h>\n" + doing("kill(getpid(), 9);"),
            "crash_candidate",
            "exit 137:",
            id="kills itself, which is no limit",
        ),
        pytest.param(
            doing(
                "volatile char *all = malloc(1 << 28);"
                " for (long i = 0; i < 1 << 28; i += 4096) all[i] = 1; sleep(5);"
            ),
            "crash_candidate",
            "killed: memory",
            id="K-116-takes 256 MiB",
        ),
        pytest.param(
            FAST.replace("+ 28", "+ 27"),
            "invalid",
            "the sum is ",
            id="is wrong",
        ),
        pytest.param(
            doing('if (symlink("/etc/passwd", "out/link")) exit(1);'),
            "invalid",
            "outputs refused: out/link ",
            id="K-131-K-152-leaves a link",
        ),
    ],
)
def test_a_real_failure_is_the_candidates(
    workshop: Workshop, source: str, kind: str, why: str
) -> None:
    verdict = workshop.judged(source)
    assert verdict.verdict == kind, verdict.reasons
    assert verdict.reasons[0].startswith(why), verdict.reasons


@shows("K-115", "K-151")
def test_a_run_that_hangs_is_ended(workshop: Workshop) -> None:
    kit = load_kit(workshop.kit)
    desk = workshop.desk(run=msgspec.structs.replace(kit.run, timeout_s=1))
    verdict = judge(workshop.job(doing("sleep(60);")), desk)
    assert isinstance(verdict, Verdict)
    assert (verdict.verdict, verdict.reasons) == ("crash_candidate", ["killed: timeout"])


@shows("K-115", "K-150")
def test_a_build_that_hangs_is_ended_and_tried_again(workshop: Workshop) -> None:
    kit = load_kit(workshop.kit)
    section = msgspec.structs.replace(
        kit.build,
        timeout_s=1,
        command=["sh", "-c", "grep -q hang sum.c && sleep 60; exec sh .kit/bench/build.sh"],
    )
    desk = workshop.desk(build=section)
    job = workshop.job("/* hang */" + SLOW)
    for _ in range(2):
        verdict = judge(job, desk)
        assert isinstance(verdict, Verdict)
        assert verdict.verdict == "crash_candidate"
        assert verdict.reasons == ["build: build killed (timeout)"]
    ours = [build for build in workshop.of(Build) if build.arm == "candidate"]
    assert [build.cached for build in ours] == [False, False]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        pytest.param("true", "build: build outputs missing: out/bench", id="makes nothing"),
        pytest.param(
            "mkdir out && ln -s /bin/true out/bench",
            "build: build outputs refused: out/bench ",
            id="makes a link",
        ),
        pytest.param(
            "mkdir out && cp sum.c out/bench && ln out/bench out/again",
            "build: build outputs refused: out/bench ",
            id="makes a hard link",
        ),
    ],
)
@shows("K-131", "K-149")
def test_what_a_build_may_not_leave(workshop: Workshop, command: str, why: str) -> None:
    kit = load_kit(workshop.kit)
    wrapped = f"grep -q other sum.c || exec sh .kit/bench/build.sh; {command}"
    section = msgspec.structs.replace(kit.build, command=["sh", "-c", wrapped])
    verdict = judge(workshop.job("/* other */" + SLOW), workshop.desk(build=section))
    assert isinstance(verdict, Verdict)
    assert verdict.verdict == "invalid"
    assert verdict.reasons[0].startswith(why), verdict.reasons


def test_an_output_that_the_commit_brings_along_is_no_build(workshop: Workshop) -> None:
    kit = load_kit(workshop.kit)
    wrapped = "test -e other || exec sh .kit/bench/build.sh; ls out"
    section = msgspec.structs.replace(kit.build, command=["sh", "-c", wrapped])
    files = {"sum.c": SLOW, "other": "", "out/bench": "#!/bin/sh\n"}
    verdict = judge(workshop.job(files), workshop.desk(build=section))
    assert isinstance(verdict, Verdict)
    assert verdict.verdict == "invalid"


@shows("K-100", "K-101")
def test_stages_get_the_documents_environment(workshop: Workshop) -> None:
    kit = load_kit(workshop.kit)
    wrapped = "grep -q tell sum.c || exec sh .kit/bench/build.sh; env | sort; pwd; ls -A; exit 1"
    section = msgspec.structs.replace(kit.build, command=["sh", "-c", wrapped])
    verdict = judge(workshop.job("/* tell */"), workshop.desk(build=section))
    assert isinstance(verdict, Verdict)
    said = [line for line in verdict.reasons[0].splitlines()[1:] if not line.startswith("_=")]
    names = [line.partition("=")[0] for line in said[:-3]]
    assert [name for name in names if name != "PWD"] == ["HOME", "LANG", "PATH", "TMPDIR", "USER"]
    assert "USER=builder" in said
    assert f"HOME={said[-3]}" in said
    assert f"TMPDIR={said[-3]}" in said
    assert said[-2:] == [".kit", "sum.c"]


def test_a_source_with_a_hostile_link_is_not_built(workshop: Workshop) -> None:
    tree = workshop.folder / "hostile"
    write(tree, {"sum.c": SLOW})
    (tree / "link").symlink_to("/etc/passwd")
    repo = workshop.folder / "project.git"
    commit = commit_of_folder(repo, tree)
    hostile = Revision(commit=commit, tree=tree_of(repo, commit))
    verdict = workshop.judged(hostile)
    assert verdict.verdict == "invalid"
    assert verdict.reasons == ["build: source refused: link is a link that leaves the tree"]


def test_a_link_in_a_kit_leads_its_check_to_what_it_names(workshop: Workshop) -> None:
    check, real = workshop.kit / "check.py", workshop.kit / "real-check.py"
    check.rename(real)
    check.symlink_to(real.name)
    try:
        alone = wanted(objective=None, cells=[], held_out_cells=[])
        verdict = workshop.judged(FAST, kind="single", champion=None, contract=alone)
    finally:
        real.rename(check)
    assert verdict.verdict == "valid", verdict.reasons


def test_a_candidate_alone_is_valid(workshop: Workshop) -> None:
    alone = wanted(objective=None, cells=[], held_out_cells=[])
    verdict = workshop.judged(FAST, kind="single", champion=None, contract=alone)
    assert verdict.verdict == "valid", verdict.reasons
    assert set(verdict.cells) == {"small", "held"}
    assert (verdict.cells["small"]["speed"].candidate or 0.0) > 1e6


@shows("K-148")
def test_a_champion_that_does_not_build_is_infrastructure(workshop: Workshop) -> None:
    broken = workshop.commit({"sum.c": "int sum("})
    verdict = workshop.judged(FAST, champion=broken)
    assert verdict.verdict == "crash_infra"
    assert verdict.reasons[0].startswith("the champion's build failed: build: build failed (exit")


def test_a_selftest_and_a_re_anchor_measure_for_real(workshop: Workshop) -> None:
    found = selftest(workshop.job(SLOW, attempt=None), workshop.desk(), nonce="0" * 64)
    assert len(found.blocks) == 8
    assert found.grade in {"quiet", "usable", "noisy"}
    claim = re_anchor(workshop.job(FAST, attempt=None, kind="re_anchor"), workshop.desk())
    assert (claim.blocks, claim.reason) == (20, None)
    assert claim.gain is not None
    assert claim.gain > 0.5
