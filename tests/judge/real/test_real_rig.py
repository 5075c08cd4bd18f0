"""Real git, cc and processes on a spawner of this process's own, at level none.

The kit sums the numbers below n; its driver and its check are the kit's own. Times are
noisy here, so gains are large and budgets wide.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest

from tests.judge.job.simulated_desk import contract
from thermite.judge.build.store import BuildStore
from thermite.judge.job import Desk, judge, re_anchor, selftest
from thermite.kit.export import tree_entries, tree_of
from thermite.kit.folder import commit_of_folder
from thermite.kit.manifest import load_kit
from thermite.rig.stages import Stages
from thermite.rig.start import spawner
from thermite.schema.contract import Contract, RepoAt
from thermite.schema.event import Block, Build, Check, Run, Verdict
from thermite.schema.job import Job, Revision
from thermite.schema.strict import Strict

MANIFEST = {
    "schema_version": 1,
    "name": "sums",
    "target": "cpu",
    "build": {
        "copy": ["bench"],
        "command": ["sh", ".kit/bench/build.sh"],
        "outputs": ["out/bench"],
        "timeout_s": 20,
        "rss_mib": 512,
        "disk_mib": 64,
    },
    "cells": {
        "small": {"n": 40000000, "work": 40000000},
        "held": {"n": 48000000, "work": 48000000},
    },
    "run": {
        "command": ["{build:out/bench}", "{params}", "{out}", "{kit:bench/given.txt}"],
        "copy": ["bench/given.txt"],
        "timeout_s": 10,
        "rss_mib": 64,
        "disk_mib": 8,
    },
    "metrics": {"speed": {"unit": "sums/s", "work": "work"}},
    "check": {"command": ["python3", "{kit:check.py}", "{params_json}", "{out}"]},
}
KIT_FILES = {
    "bench/build.sh": "set -e\nmkdir -p out\ncc -O1 -o out/bench .kit/bench/driver.c sum.c\n",
    "bench/given.txt": "given\n",
    "bench/driver.c": """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
unsigned long sum(unsigned long n);
int main(int argc, char **argv) {
    char line[64], path[4096];
    unsigned long n = 0;
    FILE *params = fopen(argv[1], "r");
    while (fgets(line, sizeof line, params))
        if (!strncmp(line, "n=", 2)) n = strtoul(line + 2, 0, 10);
    FILE *given = fopen(argv[3], "r");
    if (!given || !fgets(line, sizeof line, given)) return 9;
    snprintf(path, sizeof path, "%s/sum", argv[2]);
    unsigned long found = sum(n);
    FILE *out = fopen(path, "w");
    fprintf(out, "%lu", found);
    return fclose(out);
}
""",
    "check.py": """
import json, pathlib, sys
n = json.load(open(sys.argv[1]))["n"]
found = pathlib.Path(sys.argv[2], "sum").read_text()
wrong = [] if found == str(n * (n - 1) // 2) else [f"the sum is {found}"]
print(json.dumps({"pass": not wrong, "reasons": wrong}))
""",
}
SLOW = """
unsigned long sum(unsigned long n) {
    volatile unsigned long total = 0;
    for (unsigned long i = 0; i < n; i++) total += i;
    return total;
}
"""
FAST = SLOW.replace("i++) total += i;", "i += 8) total += 8 * i + 28;")
HEAD = "#include <stdlib.h>\n#include <stdio.h>\n#include <string.h>\n#include <unistd.h>\n"

Candidate: TypeAlias = str | Mapping[str, str] | Revision
"""The text of sum.c, several files, or a commit."""


def doing(statement: str) -> str:
    """A candidate that does something else as well."""
    return HEAD + FAST.replace("volatile", f"{statement}\n    volatile")


@dataclass
class Workshop:
    """A project's repository, a kit's folder and a desk on a rig."""

    folder: Path
    rig: Stages
    kit: Path
    appended: list[Strict] = field(default_factory=list)

    def commit(self, files: Mapping[str, str]) -> Revision:
        tree = self.folder / f"tree-{len(list(self.folder.iterdir()))}"
        write(tree, files)
        repo = self.folder / "project.git"
        commit = commit_of_folder(repo, tree)
        return Revision(commit=commit, tree=tree_of(repo, commit))

    def desk(self, **changed: object) -> Desk:
        for name in ("store", "scratch"):
            (self.folder / name).mkdir(exist_ok=True)
        kit = load_kit(self.kit)
        return Desk(
            stages=self.rig,
            kit=msgspec.structs.replace(kit, **changed),
            kit_folder=self.kit,
            export=lambda commit: tree_entries(self.folder / "project.git", commit),  # type: ignore[arg-type]
            store=BuildStore(self.folder / "store"),
            append=self._append,
            stopping=lambda: False,
            scratch=self.folder / "scratch",
            toolchain="cc",
        )

    def job(self, candidate: Candidate, **changed: object) -> Job:
        files = {"sum.c": candidate} if isinstance(candidate, str) else candidate
        plain = Job(
            kind="attempt",
            assignment="a" * 32,
            attempt=1,
            tries=1,
            candidate=files if isinstance(files, Revision) else self.commit(files),
            champion=self.commit({"sum.c": SLOW}),
            k=1,
            order_seed="33" * 32,
            contract=wanted(),
            contract_sha256="c" * 64,
            kit=RepoAt(repo="sums", commit="f" * 40),
            judged_outputs={},
            history=[],
        )
        return msgspec.structs.replace(plain, **changed)

    def judged(self, candidate: Candidate, **changed: object) -> Verdict:
        verdict = judge(self.job(candidate, **changed), self.desk())
        assert isinstance(verdict, Verdict)
        assert list((self.folder / "scratch").iterdir()) == []
        return verdict

    def of(self, kind: type) -> list:  # type: ignore[type-arg]
        return [fact for fact in self.appended if isinstance(fact, kind)]

    def _append(self, payloads: Sequence[Strict]) -> None:
        self.appended += payloads


def wanted(**changed: object) -> Contract:
    whole: dict[str, object] = {
        "cells": ["small"],
        "held_out_cells": ["held"],
        # Beside other work a probe can take as long as a run: that is not what is tried here.
        "judging": {
            "startup_share_max": 1.0,
            "settle_ms": 0,
            "max_discard_share": 0.9,
            "suspect_gain": 1000.0,
        },
    }
    return contract(**(whole | changed))


def write(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    folder = tmp_path_factory.mktemp("workshop")
    kit = folder / "kit"
    write(kit, {**KIT_FILES, "kit.json": json.dumps(MANIFEST)})
    with spawner(folder / "rig", isolation="none") as rig:
        yield Workshop(folder, rig, kit)


@pytest.fixture(autouse=True)
def fresh(workshop: Workshop) -> None:
    workshop.appended.clear()


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
    assert verdict.verdict == "regressed", verdict.reasons


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
            id="takes 256 MiB",
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
            id="leaves a link",
        ),
    ],
)
def test_a_real_failure_is_the_candidates(
    workshop: Workshop, source: str, kind: str, why: str
) -> None:
    verdict = workshop.judged(source)
    assert verdict.verdict == kind, verdict.reasons
    assert verdict.reasons[0].startswith(why), verdict.reasons


def test_a_run_that_hangs_is_ended(workshop: Workshop) -> None:
    kit = load_kit(workshop.kit)
    desk = workshop.desk(run=msgspec.structs.replace(kit.run, timeout_s=1))
    verdict = judge(workshop.job(doing("sleep(60);")), desk)
    assert isinstance(verdict, Verdict)
    assert (verdict.verdict, verdict.reasons) == ("crash_candidate", ["killed: timeout"])


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


def test_a_candidate_alone_is_valid(workshop: Workshop) -> None:
    alone = wanted(objective=None, cells=[], held_out_cells=[])
    verdict = workshop.judged(FAST, kind="single", champion=None, contract=alone)
    assert verdict.verdict == "valid", verdict.reasons
    assert set(verdict.cells) == {"small", "held"}
    assert (verdict.cells["small"]["speed"].candidate or 0.0) > 1e6


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
