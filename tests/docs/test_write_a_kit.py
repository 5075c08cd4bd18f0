"""The how-to "Write a kit" gives a kit that works: its files are laid out and used as it says."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from thermite.kit.examine import examine
from thermite.kit.known import known_names, read_expectation, read_known_contract
from thermite.kit.manifest import load_kit
from thermite.kit.placeholder import expand, params_json, params_text
from thermite.schema.expectation import Expectation, KnownContract

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/write-a-kit.md").read_text()
FILE = re.compile(r"^`([\w./-]+)`\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"(?<!`\n\n)^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page's kit, laid out."""
    folder = tmp_path_factory.mktemp("kit")
    for name, text in FILE.findall(PAGE):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def run(kit: Path, candidate: str, cell: str, into: Path) -> dict[str, object]:
    """Build a candidate, run it on a cell, and return what the check says."""
    manifest = load_kit(kit)
    shutil.copytree(kit / "candidates/base", into)
    if candidate != "base":
        overlay = kit / "candidates" / candidate / "files"
        shutil.copytree(overlay, into, dirs_exist_ok=True)
    shutil.copytree(kit / "bench", into / ".kit/bench")
    subprocess.run(manifest.build.command, cwd=into, check=True, timeout=60)
    (into / "params.txt").write_bytes(params_text(manifest.cells[cell]))
    (into / "params.json").write_bytes(params_json(manifest.cells[cell]))
    places = {name: into / path for name, path in (("build", "."), ("params", "params.txt"),
              ("params_json", "params.json"), ("out", "out"))} | {"kit": kit}  # fmt: skip
    subprocess.run(expand(manifest.run.command, places), check=True, timeout=60)
    check = [sys.executable, *expand(manifest.check.command, places)[1:]]
    done = subprocess.run(check, capture_output=True, text=True, check=True, timeout=60)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_kit_new_writes_the_page_s_own_files(kit: Path) -> None:
    example = ROOT / "examples/kit-c"
    names = [one.relative_to(example) for one in example.rglob("*") if one.is_file()]
    assert sorted(map(str, names)) == sorted(name for name, _ in FILE.findall(PAGE))
    for name in names:
        assert (example / name).read_text() == (kit / name).read_text()


def test_the_page_s_shell_lines_work(kit: Path, tmp_path: Path) -> None:
    (tmp_path / "thermite").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m thermite "$@"\n')
    (tmp_path / "thermite").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    scripts = SHELL.findall(PAGE)
    assert scripts
    for script in scripts:
        subprocess.run(["sh", "-eu", "-c", script], cwd=kit, env=env, check=True, timeout=60)


def test_the_page_s_kit_has_neither_problem_nor_warning(kit: Path) -> None:
    found = examine(kit)
    assert (found.problems, found.warnings) == ([], [])


def test_the_page_s_expectations_can_be_read(kit: Path) -> None:
    assert known_names(kit) == ["digits", "wrong-tail"]
    for name in known_names(kit):
        raw = (kit / "candidates" / name / "expect.toml").read_bytes()
        assert isinstance(read_expectation(raw, set()), Expectation)
    raw = (kit / "candidates/contract.toml").read_bytes()
    assert isinstance(read_known_contract(raw), KnownContract)


@pytest.mark.parametrize("cell", ["small", "large", "held"])
def test_base_and_the_faster_one_are_right_on_every_cell(
    kit: Path, cell: str, tmp_path: Path
) -> None:
    for candidate in ("base", "digits"):
        assert run(kit, candidate, cell, tmp_path / candidate)["pass"] is True


def test_the_wrong_one_is_found_out_in_the_words_that_are_expected(
    kit: Path, tmp_path: Path
) -> None:
    found = run(kit, "wrong-tail", "small", tmp_path / "s")
    assert found["pass"] is False
    assert "not where they belong" in str(found["reasons"])
