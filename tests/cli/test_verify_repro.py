"""`thermite verify --repro`: both machines' words side by side, and the result as it was."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.golden.make_promotion import make
from thermite.audit.promotion import export
from thermite.cli.root import run
from thermite.harness.judge_again import judge_again
from thermite.kit.folder import commit_of_folder
from thermite.report.promotion import repro_lines
from thermite.schema.contract import RepoAt
from thermite.schema.promotion import Made, PromotionFile, Summary, Tree
from thermite.schema.repro import Repro
from thermite.shipped import shipped

KIT = shipped("kits/demo-cpu")


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A rig's folder with a promotion, and the commits of it."""
    return make(tmp_path_factory.mktemp("home")).parent


def exported(state: Path, target: Path) -> PromotionFile:
    with closing(sqlite3.connect(state / "ledger.db")) as file:
        query = "SELECT seq FROM events WHERE type = 'champion_promoted'"
        seq = str(file.execute(query).fetchone()[0])
    made = export(state / "ledger.db", seq, made=Made(by="test", at="2026-01-31T12:00:00Z"))
    target.write_bytes(msgspec.json.encode(made))
    return made


@pytest.fixture
def summary(state: Path, tmp_path: Path) -> Summary:
    return exported(state, tmp_path / "gain.json").summary


def test_both_commits_are_judged_by_this_machine(summary: Summary, tmp_path: Path) -> None:
    """A candidate that is new in a comment only: the builds are the same, so none is timed."""
    store, project = tmp_path / "project.git", tmp_path / "project"
    project.mkdir()
    program = (KIT / "candidates/base/matmul.c").read_text()
    commits = []
    for text in (program, f"{program}/* the same */\n"):
        (project / "matmul.c").write_text(text)
        commits.append(commit_of_folder(store, project))
    arms = [Tree(commit=commit, tree="") for commit in commits]
    told = msgspec.structs.replace(
        summary,
        champion=arms[0],
        candidate=arms[1],
        metric="flops_per_s",
        cells=["even"],
        held_out_cells=[],
    )
    here = judge_again(told, store, KIT)
    assert (here.problem, here.verdict, here.gain) == (None, "not_better", None)
    assert here.kit is not None
    lines = repro_lines(told, here)
    assert lines[1].startswith("here:  no gain was measured, isolation ")
    assert lines[2].startswith("another kit judged here: ")


@pytest.mark.parametrize("code", [0, 8])
def test_what_can_not_be_judged_here_changes_no_result(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], code: int
) -> None:
    target = tmp_path / "gain.json"
    whole = exported(state, target)
    if code:
        wrong = msgspec.structs.replace(whole.summary, gain=9.0)
        target.write_bytes(msgspec.json.encode(msgspec.structs.replace(whole, summary=wrong)))
    project = str(state / "repos/project-p.git")
    given = ["verify", str(target), "--project", project, "--repro", "--kit", str(tmp_path)]
    assert run([*given, "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert told["holds"] == (code == 0)
    why = "has no kit.json" if code == 0 else "the check of the file failed"
    assert why in told["repro"]["problem"]
    assert run(given) == code
    assert f"not judged here: {told['repro']['problem']}\n" in capsys.readouterr().out


def test_both_intervals_stand_below_each_other(summary: Summary) -> None:
    here = Repro(
        verdict="not_confirmed", gain=0.2, interval=(0.1, None), isolation="users", kit=summary.kit
    )
    there, beside = repro_lines(summary, here)
    assert there.startswith("there: +2")
    assert beside == "here:  +20.00 %, from +10.00 % to ?, isolation users: not_confirmed"
    other = msgspec.structs.replace(here, kit=RepoAt(repo="tiny", commit="a" * 40))
    assert repro_lines(summary, other)[-1].startswith("another kit judged here: aaaaaaaaaaaa")


@pytest.mark.parametrize(
    "given", [["--repro"], ["--repro", "--kit", "."], ["--kit", "."], ["--repro", "--project", "."]]
)
def test_judging_here_takes_commits_and_a_kit(
    given: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["verify", str(tmp_path), *given]) == 2
    assert "give --project and --kit" in capsys.readouterr().err
