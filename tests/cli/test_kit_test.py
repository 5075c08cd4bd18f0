"""`thermite kit test` as a user runs it, on the shipped kits."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from thermite.shipped import shipped


def thermite(*args: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "thermite", *args]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=500)


def tried(kit: Path, *args: str) -> tuple[int, dict[str, object]]:
    done = thermite("kit", "test", str(kit), "--json", *args)
    told = json.loads(done.stdout)
    assert isinstance(told, dict)
    return done.returncode, told


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        pytest.param("01-broken", "invalid", id="does not compile"),
        pytest.param("02-wrong-edge", "invalid", id="wrong at the edge"),
        pytest.param("08-comment-only", "not_better", id="the same bytes"),
    ],
)
def test_a_known_candidate_gets_the_verdict_that_its_author_expects(
    name: str, verdict: str
) -> None:
    code, told = tried(shipped("kits/demo-cpu"), "--only", name)
    assert isinstance(told["candidates"], list)
    (one,) = told["candidates"]
    assert one["verdict"] == verdict, one
    assert (code, told["ok"], one["ok"]) == (0, True, True)
    assert str(told["isolation"]).startswith("isolation: ")


def test_another_verdict_than_expected_fails(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    shutil.copytree(shipped("kits/demo-cpu"), kit)
    (kit / "candidates/01-broken/expect.toml").write_text('verdict = ["promoted"]\n')
    code, told = tried(kit, "--only", "01-broken")
    assert code == 1
    assert told["ok"] is False


def test_a_kit_that_is_a_clone_is_tested_as_it_stands(tmp_path: Path) -> None:
    made, kit = tmp_path / "made", tmp_path / "kit"
    shutil.copytree(shipped("kits/demo-cpu"), made)
    (made / ".gitignore").write_text("*.o\n")
    who = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "a kit"]):
        subprocess.run(["git", "-C", made, *words], check=True)
    subprocess.run(["git", "clone", "-q", made, kit], check=True)
    # What git ignores is no part of it, what is not committed yet is.
    (kit / "candidates/base/left.o").write_bytes(b"x" * 100)
    (kit / "candidates/01-broken/expect.toml").write_text('verdict = ["invalid"]\n# mine\n')
    code, told = tried(kit, "--only", "01-broken")
    assert (code, told["ok"]) == (0, True), told
    assert thermite("kit", "check", str(kit)).returncode == 0


def test_a_reason_is_held_against_its_pattern(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    shutil.copytree(shipped("kits/demo-cpu"), kit)
    pattern = 'verdict = ["invalid"]\nreason = "no such words"\n'
    (kit / "candidates/01-broken/expect.toml").write_text(pattern)
    assert tried(kit, "--only", "01-broken")[0] == 1


def test_a_case_that_means_nothing_here_is_skipped_by_name(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    shutil.copytree(shipped("kits/demo-cpu"), kit)
    needs = 'verdict = ["invalid"]\nneeds = ["cuda-gpu"]\n'
    (kit / "candidates/01-broken/expect.toml").write_text(needs)
    code, told = tried(kit, "--only", "01-broken")
    assert isinstance(told["candidates"], list)
    assert (code, told["candidates"][0]["skipped"]) == (0, "this rig lacks cuda-gpu")


def test_long_names_keep_the_columns_and_the_wait_is_told(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    shutil.copytree(shipped("kits/demo-cpu"), kit)
    long = "08-comment-only-under-a-name-that-is-long"
    shutil.copytree(kit / "candidates/08-comment-only", kit / "candidates" / long)
    done = thermite("kit", "test", str(kit), "--only", "08-comment-only", "--only", long)
    rows = [row for row in done.stdout.splitlines() if row.startswith("ok")]
    assert [row.index(" not_better ") for row in rows] == [len(f"ok    {long}")] * 2
    assert done.stderr.splitlines()[:2] == [
        "measuring base against itself, to see what rig and kit are good for",
        "judging 08-comment-only, 1 of 2",
    ]
    assert "base" not in thermite("kit", "test", str(kit), "--only", "01-broken").stderr


def test_a_name_that_the_kit_lacks_is_not_found() -> None:
    done = thermite("kit", "test", str(shipped("kits/demo-cpu")), "--only", "nobody")
    assert done.returncode == 3
    assert "the kit has no candidate nobody" in done.stderr


def test_a_cell_too_short_to_time_is_said_aloud(tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    shutil.copytree(shipped("examples/kit-c"), kit)
    manifest = json.loads((kit / "kit.json").read_text())
    for cell in manifest["cells"].values():
        cell["count"] = 3000
    (kit / "kit.json").write_text(json.dumps(manifest))
    same = kit / "candidates" / "same"
    same.mkdir()
    (same / "expect.toml").write_text('verdict = ["not_better"]\n')
    (same / "files").mkdir()
    text = (kit / "candidates/base/sort.c").read_text()
    (same / "files" / "sort.c").write_text(f"{text}/* the same */\n")
    _, told = tried(kit, "--only", "same")
    assert isinstance(told["warnings"], list)
    assert str(told["warnings"][0]).startswith("cell small is too short to time well: startup is ")
    assert re.search(r" of base's run, of \d+\.\d ms, and 2 %", str(told["warnings"][0]))
