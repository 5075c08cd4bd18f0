"""`thermite judge` as a user and as somebody else's program run it."""

import json
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from thermite.cli.judge import EXITS
from thermite.harness.judge_here import Named, as_it_stands
from thermite.schema.verdict import VerdictKind
from thermite.shipped import shipped

KIT = shipped("kits/demo-cpu")
BASE = KIT / "candidates/base"
KEYS = ["verdict", "reasons", "marks", "champion", "gain", "interval", "cells"]
KEYS += ["blocks", "isolation", "ledger"]


def judged(*args: object) -> tuple[int, dict[str, Any]]:
    argv = [sys.executable, "-m", "thermite", "judge", *map(str, args), "--kit", KIT, "--json"]
    done = subprocess.run(
        [*map(str, argv)], capture_output=True, text=True, check=False, timeout=300
    )
    return done.returncode, json.loads(done.stdout)


def git(folder: Path, *args: str) -> None:
    who = ["-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", "-C", folder, *who, *args], check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with the base committed, and a comment and an ignored file beside it."""
    folder = tmp_path / "project"
    shutil.copytree(BASE, folder)
    (folder / ".gitignore").write_text("*.o\n")
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "base")
    (folder / "matmul.c").write_text("/* no more */\n" + (folder / "matmul.c").read_text())
    (folder / "left.o").write_bytes(b"x")
    return folder


def test_a_project_alone_is_valid_with_its_values_and_leaves_nothing() -> None:
    code, told = judged(BASE, "--cells", "even")
    assert (code, told["verdict"], told["champion"], told["ledger"]) == (0, "valid", None, None)
    assert list(told) == KEYS
    assert list(told["cells"]) == ["even"]
    assert told["cells"]["even"]["flops_per_s"]["candidate"] > 0
    assert told["isolation"]["said"].startswith("isolation: ")


def test_the_blocks_that_were_counted_are_told() -> None:
    """It was always 0: the state forgets them with the verdict."""
    slower = KIT / "candidates/07-slower/files"
    code, told = judged(slower, "--champion", BASE, "--cells", "even")
    assert (code == 1) == (told["verdict"] == "regressed")
    assert told["blocks"] >= 5


def contract(path: Path, **fields: object) -> Path:
    example = tomllib.loads((shipped("examples/matmul") / "contract.toml").read_text())
    path.write_text(json.dumps(example | fields))
    return path


def test_a_campaigns_contract_asks_the_whole_question(tmp_path: Path) -> None:
    bound = [{"metric": "flops_per_s", "min": 1e30}]
    asked = contract(tmp_path / "asked.json", hard_constraints=bound)
    code, told = judged(BASE, "--contract", asked)
    assert list(told["cells"]) == ["even"]  # held-out cells are for a gain to confirm
    assert (code, told["verdict"]) == (1, "constraint_failed")
    assert "1e+30" in told["reasons"][0]
    assert any("held-out cells are not run (odd)" in text for text in told["warnings"])


@pytest.mark.parametrize(
    ("fields", "args", "code", "said"),
    [
        pytest.param({}, ["--cells", "even"], 2, "give it alone", id="two questions"),
        pytest.param({"cells": ["evne"]}, [], 4, "names cell evne", id="another kit's"),
        pytest.param({"cells": 3}, [], 4, "asked.json: cells: ", id="no contract"),
    ],
)
def test_a_contract_that_asks_nothing_here_is_refused(
    tmp_path: Path, fields: dict[str, object], args: list[str], code: int, said: str
) -> None:
    asked = contract(tmp_path / "asked.json", **fields)
    found, told = judged(BASE, "--contract", asked, *args)
    assert found == code
    assert said in told["error"]


def test_what_does_not_build_counts_against_it(tmp_path: Path) -> None:
    (tmp_path / "matmul.c").write_text("no C\n")
    code, told = judged(tmp_path)
    assert (code, told["verdict"]) == (1, "invalid")
    assert told["reasons"][0].startswith("build: build failed (exit ")


def test_a_champion_that_does_not_build_is_the_verdict_and_no_error(tmp_path: Path) -> None:
    broken, state = tmp_path / "broken", tmp_path / "kept"
    broken.mkdir()
    (broken / "matmul.c").write_text("no C\n")
    code, told = judged(BASE, "--champion", broken, "--cells", "even", "--state", state)
    assert (code, told["verdict"], told["gain"]) == (10, "crash_infra", None)
    assert told["reasons"][0].startswith("the champion's build failed: build: ")
    export = [sys.executable, "-m", "thermite", "ledger", "export", told["ledger"]]
    events = subprocess.check_output(export, text=True).splitlines()
    types = [json.loads(line)["event"]["type"] for line in events]
    assert types.count("local_job") == types.count("assignment_ended") == 2


def test_a_work_tree_is_judged_against_a_revision_and_its_ledger_kept(
    project: Path, tmp_path: Path
) -> None:
    state = tmp_path / "kept"
    code, told = judged(project, "--champion", "HEAD", "--cells", "even", "--state", state)
    head = subprocess.check_output(["git", "-C", project, "rev-parse", "HEAD"], text=True)
    assert (code, told["verdict"]) == (0, "not_better")
    assert told["champion"] == head.strip()
    audit = [sys.executable, "-m", "thermite", "audit", told["ledger"]]
    assert subprocess.run(audit, check=False, capture_output=True).returncode == 0
    again = [sys.executable, "-m", "thermite", "show", "1", "--repro", "--state", str(state)]
    refused = subprocess.run(again, check=False, capture_output=True, text=True)
    assert refused.returncode == 1
    assert "cannot be judged again" in refused.stderr


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        pytest.param([BASE, "--cells", "evne"], 2, "the kit has no cell evne", id="cell"),
        pytest.param([BASE, "--metric", "speed"], 2, "the kit has no metric speed", id="metric"),
        pytest.param(["nowhere"], 3, "there is no folder nowhere", id="project"),
    ],
)
def test_what_is_not_there_is_named(args: list[object], code: int, said: str) -> None:
    found, told = judged(*args)
    assert found == code
    assert said in told["error"]


def test_a_work_tree_is_taken_without_what_its_git_ignores(project: Path) -> None:
    (project / "gone.c").write_text("")
    git(project, "add", "gone.c")
    (project / "gone.c").unlink()
    (project / "new.c").write_text("")
    with as_it_stands(project) as plain:
        names = sorted(path.name for path in plain.iterdir())
    assert names == [".gitignore", "README.md", "matmul.c", "new.c"]


def test_a_revision_may_be_named_with_its_folder(project: Path) -> None:
    assert Named.of(f"{project}@HEAD") == Named(project, "HEAD")
    assert Named.of("HEAD", beside=Named(project, None)) == Named(project, "HEAD")


def test_every_verdict_has_its_exit_code() -> None:
    kinds = {*VerdictKind.__args__, "held"}  # type: ignore[attr-defined]
    assert set(EXITS) <= kinds
    assert {str(k) for k in kinds if EXITS.get(k, 1) == 1} == {
        *("regressed", "overfit", "guard_failed", "constraint_failed", "invalid"),
        *("crash_candidate", "suspect", "cancelled", "goals_met", "goals_unmet"),
    }


@pytest.mark.parametrize("command", [["judge", "."], ["rig", "selftest"], ["kit", "test"]])
@pytest.mark.parametrize("place", ["nowhere", "a-file"])
def test_a_kit_that_is_not_there_is_not_found_by_any_command(
    tmp_path: Path, command: list[str], place: str
) -> None:
    (tmp_path / "a-file").write_text("")
    kit = [place] if command[0] == "kit" else ["--kit", place]
    argv = [sys.executable, "-m", "thermite", *command, *kit]
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, env=env, check=False)
    assert done.returncode == 3, done.stderr
    assert place in done.stderr
