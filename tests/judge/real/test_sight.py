"""What a kit's stages see and may change, and where the borders of their outputs lie."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import pytest

from tests.judge.real.workshop import FAST, SLOW, Workshop, doing, furnish, wanted
from tests.namespaced import Namespace, possible
from tests.open_folder import open_folder
from tests.requirement import shows
from thermite.judge.job import judge
from thermite.kit.manifest import load_kit
from thermite.rig.start import spawner
from thermite.schema.event import Run, Verdict

FIVE = {"HOME", "LANG", "PATH", "TMPDIR", "USER"}
ALONE = wanted(objective=None, cells=[], held_out_cells=[])
PASSES = ["sh", "-c", "echo '{\"pass\": true}'"]


def alone(workshop: Workshop, source: str = FAST, **changed: Mapping[str, object]) -> Verdict:
    """Judge a candidate without a champion, with parts of the kit's sections changed."""
    kit = load_kit(workshop.kit)
    sections = {
        name: msgspec.structs.replace(getattr(kit, name), **part) for name, part in changed.items()
    }
    desk = workshop.desk(cells={"small": kit.cells["small"]}, **sections)
    job = workshop.job(source, kind="single", champion=None, contract=ALONE)
    verdict = judge(job, desk)
    assert isinstance(verdict, Verdict)
    return verdict


def said(verdict: Verdict) -> list[str]:
    """Return the lines that a stage wrote to its standard error before it failed."""
    return verdict.reasons[0].partition(": ")[2].splitlines()


@shows("K-041", "K-102", "K-103")
def test_a_run_has_its_own_folder_five_variables_and_the_cells_parameters(
    workshop: Workshop,
) -> None:
    script = (
        "tr '\\0' '\\n' < /proc/$$/environ >&2; pwd >&2; echo $(ls -A) >&2; ls -A out >&2;"
        " cat {params} {params_json} >&2; exit 1"
    )
    verdict = alone(workshop, run={"command": ["sh", "-c", script], "copy": []})
    assert verdict.verdict == "crash_candidate"
    lines = said(verdict)
    environment = dict(line.split("=", 1) for line in lines[:5])
    assert set(environment) == FIVE
    assert (environment["USER"], environment["LANG"]) == ("run", "C.UTF-8")
    assert environment["HOME"] == environment["TMPDIR"] == lines[5]
    assert lines[6] == "out params.json params.txt"
    assert lines[7:9] == ["n=40000000", "work=40000000"]
    assert json.loads(lines[9]) == {"n": 40000000, "work": 40000000}
    assert len(lines) == 10, "the out folder is empty"


@shows("K-092", "K-105")
def test_a_check_stands_in_the_kit_itself_with_one_variable(workshop: Workshop) -> None:
    script = "tr '\\0' '\\n' < /proc/$$/environ >&2; pwd >&2; echo {kit} >&2; echo $(ls) >&2"
    verdict = alone(workshop, check={"command": ["sh", "-c", script]})
    assert verdict.verdict == "invalid"
    path, here, kit, files = said(verdict)
    assert path == f"PATH={workshop.rig.path_variable}"
    assert here == kit
    assert files == "bench check.py kit.json"


@shows("K-089", "K-090")
def test_a_run_that_rewrites_its_parameters_changes_nobody_elses(workshop: Workshop) -> None:
    rewrites = doing(
        'FILE *p = fopen("params.json", "w"); fputs("{\\"n\\": 1}", p); fclose(p);'
        ' p = fopen("params.txt", "w"); fputs("n=1\\n", p); fclose(p);'
    )
    assert alone(workshop, rewrites).verdict == "valid"


@shows("K-053")
def test_a_run_that_prints_a_score_is_timed_all_the_same(workshop: Workshop) -> None:
    boasts = doing('puts("{\\"pass\\": true, \\"speed\\": 1e15, \\"work\\": 1e15}");')
    verdict = alone(workshop, boasts)
    assert verdict.verdict == "valid", verdict.reasons
    [run] = workshop.of(Run)
    speed = 40000000 / (run.record.t_ns / 1e9)
    assert verdict.cells["small"]["speed"].candidate == pytest.approx(speed)


def files(folder: str, count: int) -> str:
    """A shell line that makes so many files."""
    return f"mkdir -p {folder}; i=0; while [ $i -lt {count} ]; do : > {folder}/$i; i=$((i+1)); done"


def levels(folder: str, count: int) -> str:
    """A shell line that makes so many folders, one in the other."""
    return f"mkdir -p {folder}/{'/'.join('d' * count)}"


@pytest.mark.parametrize(
    ("leaves", "why"),
    [
        pytest.param(files("{out}", 10_000), None, id="K-132-10,000 files"),
        pytest.param(files("{out}", 10_001), "more than 10000 files", id="K-132-10,001 files"),
        pytest.param(levels("{out}", 32), None, id="K-133-32 levels"),
        pytest.param(levels("{out}", 33), "nested deeper than 32", id="K-133-33 levels"),
    ],
)
@shows("D53")
def test_a_run_may_leave_so_much_and_no_more(
    workshop: Workshop, leaves: str, why: str | None
) -> None:
    run = {"command": ["sh", "-c", leaves], "copy": [], "disk_mib": 512}
    verdict = alone(workshop, run=run, check={"command": PASSES})
    assert verdict.verdict == ("valid" if why is None else "invalid"), verdict.reasons
    assert why is None or why in verdict.reasons[0]


@pytest.mark.parametrize(
    ("leaves", "why"),
    [
        # The declared folder is an entry and a level of its own.
        pytest.param(files("out", 19_999), None, id="K-132-20,000 entries"),
        pytest.param(files("out", 20_000), "more than 20000 files", id="K-132-20,001 entries"),
        pytest.param(levels("out", 31), None, id="K-133-32 levels"),
        pytest.param(levels("out", 32), "nested deeper than 32", id="K-133-33 levels"),
    ],
)
@shows("D53")
def test_a_build_may_leave_so_much_and_no_more(
    workshop: Workshop, leaves: str, why: str | None
) -> None:
    build = {"command": ["sh", "-c", leaves], "outputs": ["out"], "disk_mib": 512, "timeout_s": 60}
    run = {"command": ["true"], "copy": []}
    verdict = alone(workshop, build=build, run=run, check={"command": PASSES})
    assert verdict.verdict == ("valid" if why is None else "invalid"), verdict.reasons
    assert why is None or why in verdict.reasons[0]


@pytest.mark.parametrize("limit", [10**15, 2**53 - 1], ids=["C5-10^15", "C5-2^53-1"])
def test_the_largest_limits_of_a_manifest_are_none(workshop: Workshop, limit: int) -> None:
    most = {"timeout_s": limit, "rss_mib": limit, "disk_mib": limit}
    verdict = alone(workshop, build=most, run=most, check={"timeout_s": limit})
    assert verdict.verdict == "valid", verdict.reasons


@pytest.fixture
def users() -> Iterator[Workshop]:
    """A workshop whose stages have users of their own, in a pid namespace that proves itself."""
    if not possible():
        pytest.skip("no pid namespace can be made here: this needs root and CAP_SYS_ADMIN")
    with (
        open_folder() as place,
        Namespace() as ns,
        spawner(place / "rig", isolation="users", run_dir=place / "run", within=ns.prefix) as rig,
    ):
        yield furnish(place, rig)


def with_tool(kit: Path) -> None:
    """Put an executable and a folder into what runs get of the kit."""
    (kit / "bench" / "deep").mkdir()
    (kit / "bench" / "deep" / "table").write_text("1 2 3")
    (kit / "bench" / "tool").write_text("#!/bin/sh\n")
    (kit / "bench" / "tool").chmod(0o700)


@shows("K-088", "K-106", "K-109")
def test_neither_a_run_nor_a_build_can_change_what_the_judge_lends(users: Workshop) -> None:
    with_tool(users.kit)
    tries = (
        "for f in {kit:bench} {kit:bench/deep} {kit:bench/deep/table} {kit:bench/tool}"
        " {build:out/bench}; do stat -c '%a' $f >&2; test $(stat -c %u $f) != $(id -u) || echo own"
        " >&2; done; (echo x > {kit:bench/deep/table}; : > {kit:bench/new}; chmod 777 {kit:bench};"
        " mv {kit:bench/tool} {kit:bench/other}; rm -f {kit:bench/tool}; echo x >"
        " {build:out/bench}; mv {build:out/bench} {build:out/b}; chmod 777 {build:out})"
        " 2>/dev/null; cat {kit:bench/deep/table} >&2; ls {kit:bench} >&2; exit 1"
    )
    kept = {path: path.read_bytes() for path in users.kit.rglob("*") if path.is_file()}
    verdict = alone(users, run={"command": ["sh", "-c", tries], "copy": ["bench"]})
    assert verdict.verdict == "crash_candidate"
    lines = said(verdict)
    assert lines[:5] == ["555", "555", "444", "555", "555"]
    assert lines[5] == "1 2 3build.sh", "and nothing was the run's own"
    assert lines[6:] == ["deep", "driver.c", "given.txt", "tool"]
    assert {path: path.read_bytes() for path in users.kit.rglob("*") if path.is_file()} == kept


@shows("K-100", "K-109")
def test_a_build_that_writes_into_its_copy_of_the_kit_spoils_no_other(users: Workshop) -> None:
    spoils = "echo exit 3 > .kit/bench/build.sh; exit 1"
    first = alone(users, build={"command": ["sh", "-c", spoils]})
    assert first.reasons[0].startswith("build: build failed (exit 1)")
    second = alone(users, SLOW)
    assert second.verdict == "valid", second.reasons
