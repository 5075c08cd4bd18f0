"""`thermite` finds its subcommands late, and each has help worth reading."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.tree import ALL, LEAVES
from tests.requirement import shows
from thermite.cli.commands import COMMANDS

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "rich", "cryptography", "git", "sqlite_utils", "watchdog", "psutil", "msgspec"}


def thermite(*args: str, cwd: Path = ROOT, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "thermite", *args],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)} | env,
        check=False,
        timeout=60,
    )


def test_help_imports_nothing_heavy() -> None:
    code = """
import json, sys
from thermite.cli.root import run
code = run(["--help"])
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert loaded & HEAVY == set()


def test_help_names_every_command() -> None:
    done = thermite("--help")
    assert done.returncode == 0
    assert done.stderr == ""
    for name, entry in COMMANDS.items():
        assert f"  {name} " in done.stdout
        assert entry.about in " ".join(done.stdout.split())


@pytest.mark.parametrize("path", [path for path, _ in ALL], ids=" ".join)
def test_every_command_has_help_with_an_example(path: tuple[str, ...]) -> None:
    done = thermite(*path, "--help")
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "Example: thermite " + " ".join(path) in words


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_speaks_json(path: tuple[str, ...]) -> None:
    assert "--json" in thermite(*path, "--help").stdout


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_command_answers_wrong_usage_as_one_document(path: tuple[str, ...]) -> None:
    done = thermite(*path, "--json", "--no-such-option")
    assert done.returncode == 2
    assert json.loads(done.stdout)["exit"] == 2
    assert done.stderr == ""


@pytest.mark.parametrize("args", [("nonsense",), ("--nonsense",)])
def test_wrong_usage_says_where_to_look(args: tuple[str, ...]) -> None:
    done = thermite(*args)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: no such ")
    assert done.stderr.endswith("see thermite --help\n")


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("statsu",), "no such command 'statsu': did you mean status? see thermite --help"),
        (("kit", "chek"), "no such command 'chek': did you mean check? see thermite kit --help"),
        (("xyzzy",), "no such command 'xyzzy': see thermite --help"),
        (
            ("init",),
            (
                "missing option '--example'. Choose from: matmul, matmul-goals: see"
                " thermite init --help"
            ),
        ),
    ],
)
def test_what_was_mistyped_is_guessed_and_said_on_one_line(
    args: tuple[str, ...], told: str
) -> None:
    assert thermite(*args).stderr == f"error: {told}\n"


def test_nothing_to_do_shows_help() -> None:
    done = thermite()
    assert done.returncode == 2
    assert "Usage: thermite" in done.stderr


def test_version_is_the_package_s() -> None:
    assert thermite("--version").stdout == "thermite 0.1.0\n"


@shows("U14")
@pytest.mark.parametrize(
    "env",
    [
        pytest.param({}, id="no HOME"),
        pytest.param({"HOME": "/nonexistent"}, id="no such HOME"),
        pytest.param({"PYTHONOPTIMIZE": "1"}, id="python -O"),
        pytest.param({"LANG": "C", "PYTHONIOENCODING": "ascii"}, id="ascii"),
    ],
)
def test_help_works_in_poor_surroundings(env: dict[str, str], tmp_path: Path) -> None:
    done = thermite("--help", cwd=tmp_path, **env)
    assert done.returncode == 0, done.stderr
