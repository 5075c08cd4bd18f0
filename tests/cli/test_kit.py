"""`thermite kit check` and `thermite init`, as an author types them."""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from thermite.cli.root import run

ROOT = Path(__file__).parents[2]


def thermite(*args: str, cwd: Path, path: str | None = None) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"] if path is None else path, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, "-m", "thermite", *args],
        cwd=cwd,
        env=env | {"HOME": str(cwd)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("kit", ["demo-cpu", "smoke-cpu"])
def test_kit_check_needs_no_git_and_says_that_all_is_well(kit: str, tmp_path: Path) -> None:
    done = thermite("kit", "check", str(ROOT / "kits" / kit), "--json", cwd=tmp_path, path="")
    assert (done.returncode, json.loads(done.stdout)) == (
        0,
        {"ok": True, "problems": [], "warnings": []},
    )
    assert list(tmp_path.iterdir()) == []


def test_kit_check_names_every_problem_and_exits_4(tmp_path: Path) -> None:
    (tmp_path / "kit.json").write_text('{"schema_version": 1, "name": "A"}')
    done = thermite("kit", "check", str(tmp_path), "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (done.returncode, found["ok"], done.stderr) == (4, False, "")
    assert [one.partition(":")[0] for one in found["problems"]] == [
        "name", "target", "build", "cells", "run", "metrics", "check",
    ]  # fmt: skip
    shown = thermite("kit", "check", str(tmp_path), cwd=tmp_path)
    assert shown.returncode == 4
    assert shown.stdout.splitlines() == found["problems"]


def test_kit_check_prints_warnings_and_goes_on(tmp_path: Path) -> None:
    manifest = json.loads((ROOT / "kits/smoke-cpu/kit.json").read_text())
    manifest |= {"target": "abacus", "build": {"command": ["true"], "outputs": ["out"]}}
    manifest["check"]["command"] = ["true"]
    (tmp_path / "kit.json").write_text(json.dumps(manifest))
    done = thermite("kit", "check", str(tmp_path), "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)["warnings"] == [
        "target: this version has no driver for abacus, only for cpu and cuda-gpu"
    ]


def test_a_candidates_contract_with_a_cell_that_the_kit_lacks_is_refused(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/kit-c", tmp_path / "kit")
    (tmp_path / "kit/candidates/contract.toml").write_text('cells = ["rna"]\n')
    said = "candidates/contract.toml: cells names cell rna, which the kit does not have"
    tried = thermite("kit", "test", "kit", cwd=tmp_path)
    assert (tried.returncode, tried.stderr) == (4, f"error: {said}\n")
    looked_at = thermite("kit", "check", "kit", "--json", cwd=tmp_path)
    assert (looked_at.returncode, json.loads(looked_at.stdout)["problems"]) == (4, [said])


def test_kit_check_counts_its_warnings(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples/kit-c", tmp_path / "kit")
    assert thermite("kit", "check", "kit", cwd=tmp_path).stdout == "kit: no problems\n"
    shutil.rmtree(tmp_path / "kit/candidates")
    done = thermite("kit", "check", "kit", "--strict", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "kit: no problems, 3 warnings\n")


def test_kit_check_of_no_folder_is_not_found(tmp_path: Path) -> None:
    assert thermite("kit", "check", "nowhere", cwd=tmp_path).returncode == 3


@pytest.mark.parametrize("words", ["check", "test", "show", "bundle", "fit --contract x.toml"])
def test_every_command_about_a_kit_says_alike_that_it_is_not_there(
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(ROOT / "examples/matmul/contract.toml", "x.toml")
    verb, *options = words.split()
    assert run(["kit", verb, "nowhere", *options]) == 3
    assert capsys.readouterr().err == "error: there is no folder nowhere\n"


def test_a_file_is_told_from_a_kit_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kit.json").write_text("{}")
    assert run(["kit", "check", str(tmp_path / "kit.json")]) == 3
    said = f"{tmp_path}/kit.json is a file: a kit is a folder, with a kit.json in it"
    assert capsys.readouterr().err == f"error: {said}\n"


def test_a_bare_noun_lists(tmp_path: Path) -> None:
    done = thermite("kit", "--json", cwd=tmp_path)
    assert done.returncode == 0
    listed = json.loads(done.stdout)["kits"]
    assert {"demo-cpu", "smoke-cpu"} <= {kit["name"] for kit in listed}
    assert all(kit["shipped"] for kit in listed), "nothing is kept yet"


def test_init_makes_a_repository_that_can_be_assigned(tmp_path: Path) -> None:
    done = thermite("init", "work", "--example", "matmul", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    project = tmp_path / "work"
    git = ["git", "-c", "safe.directory=*", "-C", str(project)]
    said = subprocess.run([*git, "status", "--short"], capture_output=True, text=True, check=True)
    assert said.stdout == ""
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert head.stdout.strip() == made["commit"]
    assert sorted(one.name for one in project.iterdir()) == [
        ".git", ".gitignore", "README.md", "contract.toml", "matmul.c", "proposals",
    ]  # fmt: skip
    base = ROOT / "kits/demo-cpu/candidates/base/matmul.c"
    assert (project / "matmul.c").read_bytes() == base.read_bytes()
    assert Path(made["kit"]) == ROOT / "kits/demo-cpu"


def test_init_makes_the_same_commit_everywhere(tmp_path: Path) -> None:
    made = [
        json.loads(thermite("init", name, "--example", "matmul", "--json", cwd=tmp_path).stdout)
        for name in ("one", "two")
    ]
    assert made[0]["commit"] == made[1]["commit"]


def test_init_touches_no_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("mine")
    done = thermite("init", "mine", "--example", "matmul", cwd=tmp_path)
    assert done.returncode == 2
    assert "not empty" in done.stderr
    assert [one.name for one in (tmp_path / "mine").iterdir()] == ["file"]
    assert thermite("init", "mine/file", "--example", "matmul", cwd=tmp_path).returncode == 2


def test_the_example_s_contract_fits_its_kit() -> None:
    from thermite.kit.fit import fit_problems
    from thermite.kit.manifest import load_kit
    from thermite.schema.contract import Contract
    from thermite.schema.contract_text import read_toml_contract

    contract = read_toml_contract((ROOT / "examples/matmul/contract.toml").read_bytes())
    assert isinstance(contract, Contract)
    assert fit_problems(load_kit(ROOT / "kits/demo-cpu"), contract, "cpu") == []


def test_kit_new_show_fit_and_bundle_follow_each_other(tmp_path: Path) -> None:
    assert thermite("kit", "new", "mine", "--language", "python", cwd=tmp_path).returncode == 0
    shown = thermite("kit", "show", "mine", cwd=tmp_path).stdout
    assert "  sees      its build, the cell's parameters, bench/run.py" in shown.splitlines()
    manifest = json.loads(thermite("kit", "show", "mine", "--json", cwd=tmp_path).stdout)["kit"]
    assert (manifest["name"], manifest["build"]["rss_mib"]) == ("mine", 4096)
    bundle = ["kit", "bundle", "mine", "--json", "--out"]
    made = [json.loads(thermite(*bundle, name, cwd=tmp_path).stdout) for name in ("a", "b")]
    assert made[0]["commit"] == made[1]["commit"]
    assert (tmp_path / "a").stat().st_size == made[0]["bytes"]
    assert thermite(*bundle, "a", cwd=tmp_path).returncode == 2
    assert thermite("kit", "new", "mine", "--language", "c", cwd=tmp_path).returncode == 2


def test_kit_fit_says_all_that_does_not_fit(tmp_path: Path) -> None:
    contract = str(ROOT / "examples/matmul/contract.toml")
    fit = ["kit", "fit", str(ROOT / "kits/demo-cpu"), "--contract", contract]
    assert json.loads(thermite(*fit, "--json", cwd=tmp_path).stdout) == {"ok": True, "problems": []}
    other = ["kit", "fit", str(ROOT / "kits/smoke-cpu"), "--contract", contract, "--target", "gpu"]
    done = thermite(*other, "--json", cwd=tmp_path)
    assert done.returncode == 4
    assert json.loads(done.stdout) == {
        "ok": False,
        "problems": [
            "the kit measures on cpu, and this rig's target is gpu",
            "cells names cell even, which the kit does not have",
            "held_out_cells names cell odd, which the kit does not have",
        ],
    }


def test_a_time_whose_direction_was_forgotten_is_warned_of_before_anything_is_sent(
    tmp_path: Path,
) -> None:
    """A contract without it took the slower one for better, and promoted it."""
    whole = tomllib.loads((ROOT / "examples/matmul/contract.toml").read_text())
    whole["objective"] = {"primary": {"metric": "seconds"}}
    kit = tmp_path / "kit"
    shutil.copytree(ROOT / "kits/demo-cpu", kit)
    manifest = json.loads((kit / "kit.json").read_text())
    manifest["metrics"]["seconds"] = {"from": "time"}
    (kit / "kit.json").write_text(json.dumps(manifest))
    (tmp_path / "c.json").write_text(json.dumps(whole))
    done = thermite("kit", "fit", str(kit), "--contract", str(tmp_path / "c.json"), cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == (
        "warning: objective.primary: seconds is the run's time, and direction max, which is also"
        " what holds where none is written, takes the slower for the better: write"
        ' direction = "min"\n'
    )


def test_kit_fit_shows_a_broken_kit_and_a_broken_contract_together(tmp_path: Path) -> None:
    (tmp_path / "kit.json").write_text("[]")
    (tmp_path / "c.json").write_text("{}")
    done = thermite("kit", "fit", ".", "--contract", "c.json", "--json", cwd=tmp_path)
    problems = json.loads(done.stdout)["problems"]
    assert done.returncode == 4
    assert {one.partition(":")[0] for one in problems} == {"kit", "contract"}


def test_a_bundle_of_a_repository_is_its_head(tmp_path: Path) -> None:
    assert thermite("init", "p", "--example", "matmul", cwd=tmp_path).returncode == 0
    done = thermite("kit", "bundle", "p", cwd=tmp_path)
    assert (done.returncode, "kit.json" in done.stderr) == (4, True)


DESCRIBED = ["--describe", "--build", "a", "--run", "x", "--check", "y", "--output", "o"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        pytest.param(["--language", "c", "--describe"], "either --language or", id="both"),
        pytest.param([], "either --language or", id="neither"),
        pytest.param(DESCRIBED[:-4], "needs --output, --check: see", id="no output, no check"),
        pytest.param([*DESCRIBED, "--run", "'"], "--run: No closing quotation", id="open quote"),
        pytest.param([*DESCRIBED, "--cell", "a=3"], "--cell 'a=3': write it as", id="no cell"),
        pytest.param(
            [*DESCRIBED, "--cell", 'a={"n": 1}', "--cell", 'a={"n": 2}'],
            "--cell names 'a' twice: a cell has one set of parameters",
            id="one cell twice",
        ),
    ],
)
def test_kit_new_refuses_what_it_can_t_write(
    args: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["kit", "new", "mine", *args]) == 2
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_kit_new_names_the_steps_that_work_on_what_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["kit", "new", "whole", "--language", "c", "--dir", "my kit"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "next  thermite kit check 'my kit' --strict",
        "then  thermite kit test 'my kit'",
    ]
    assert run(["kit", "check", "my kit", "--strict"]) == 0
    commands = ["--build", "true", "--run", "true", "--check", "true", "--output", "x"]
    capsys.readouterr()
    assert run(["kit", "new", "bare", "--describe", *commands]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == "then  known candidates in bare/candidates, and thermite kit test bare"


def test_a_kit_that_we_ship_goes_by_its_name_where_nothing_else_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    contract = str(ROOT / "examples/matmul/contract.toml")
    named = [
        ["kit", "check", "smoke-cpu"],
        ["kit", "show", "demo-cpu"],
        ["kit", "fit", "demo-cpu", "--contract", contract],
        ["kit", "bundle", "demo-cpu"],
    ]
    for argv in named:
        assert run(argv) == 0, argv
    assert run(["kit", "test", "smoke-cpu", "--only", "nobody"]) == 3
    assert "it has 01-" in capsys.readouterr().err
    assert run(["judge", "nowhere", "--kit", "smoke-cpu"]) == 3
    assert "there is no folder nowhere" in capsys.readouterr().err
    assert run(["kit", "check", "nobodys-kit"]) == 3
    (tmp_path / "smoke-cpu").mkdir()
    assert run(["kit", "check", "smoke-cpu"]) == 4  # somebody's own, and an empty one
