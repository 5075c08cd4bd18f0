"""A command in poor surroundings ends in words: no HOME, no git, somebody else's `thermite`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.operator_desk import ROOT, Desk
from tests.requirement import shows
from thermite.cli.demo_steps import thermite
from thermite.rig.doctor import examine

CONSOLE = [sys.executable, "-P", "-m", "thermite"]
"""As the console script, which does not look into the current folder for modules."""
PRIVATE = ["unshare", "--mount", *([] if os.getuid() == 0 else ["--map-root-user"])]
"""Mounts of what it runs are seen by nobody else."""
HIDES_GIT = """
for git in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do
  test ! -e "$git/git" || mount --bind /dev/null "$git/git"
done
exec "$@"
"""
READ_ONLY = """
mount -t tmpfs -o ro none "$HOME"
exec "$@"
"""


@pytest.fixture
def private() -> list[str]:
    if subprocess.run([*PRIVATE, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may make no mount namespace")
    return PRIVATE


def ran(argv: list[str], cwd: Path, **env: str) -> tuple[int, str]:
    """Run a command with these variables alone; return its code and both streams."""
    done = subprocess.run(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=cwd,
        env={"PATH": "/nonexistent", "PYTHONPATH": str(ROOT), **env},
        check=False,
        timeout=60,
    )
    assert "Traceback" not in done.stdout
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(("init", "new", "--example", "matmul"), id="U14-init"),
        pytest.param(("kit", "bundle", "kit"), id="U14-kit bundle"),
        pytest.param(("judge", "kit", "--kit", "kit"), id="U14-judge"),
    ],
)
def test_without_git_it_is_said_what_to_install(
    private: list[str], desk: Desk, line: tuple[str, ...]
) -> None:
    argv = [*private, "sh", "-c", HIDES_GIT, "sh", *CONSOLE, *line]
    argv[0] = shutil.which(argv[0]) or argv[0]
    before = sorted(desk.folder.iterdir())
    code, said = ran(argv, desk.folder, PATH=os.environ["PATH"])
    assert (code, said.splitlines()[-1]) == (
        2,
        "error: git is not on this machine's PATH: install git 2.39 or newer",
    )
    assert sorted(desk.folder.iterdir()) == before


@shows("U14")
def test_the_doctor_lists_what_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    missing = [note.partition(" ")[0] for note in examine().notes if "is not on the PATH" in note]
    assert missing == ["git", "python3", "cc"]


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        pytest.param(
            ("keygen", "--no-passphrase"),
            2,
            "error: neither THERMITE_DATA nor XDG_DATA_HOME nor HOME names a folder",
            id="U14-keygen",
        ),
        pytest.param(("kit", "check", "kit"), 0, "kit: no problems", id="U14-kit check"),
    ],
)
def test_without_a_home_only_what_needs_one_is_refused(
    desk: Desk, line: tuple[str, ...], code: int, said: str
) -> None:
    found, words = ran([*CONSOLE, *line], desk.folder)
    assert found == code, words
    assert words.startswith(said)


@shows("U14")
def test_a_home_that_is_read_only_is_named(private: list[str], tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    for line, code, words in (
        (("keygen", "--no-passphrase"), 1, f"error: '{home}/.local': read-only file system\n"),
        (("key", "list"), 0, f"no keys in {home}/.local/share/thermite/keys"),
    ):
        argv = [*private, "sh", "-c", READ_ONLY, "sh", *CONSOLE, *line]
        found, said = ran(argv, tmp_path, PATH=os.environ["PATH"], HOME=str(home))
        assert found == code, said
        assert said.startswith(words)


@shows("U14")
def test_a_folder_called_thermite_beside_it_is_not_taken_for_it(desk: Desk) -> None:
    for name in ("thermite", "supervisor"):
        (desk.folder / name).mkdir()
        (desk.folder / name / "__init__.py").write_text("raise SystemExit('the wrong one')")
    assert ran(thermite("--version"), desk.folder) == (0, "thermite 0.1.0\n")
    judge = [*CONSOLE, "judge", "project", "--kit", "kit"]
    env = {"PATH": os.environ["PATH"], "PYTHONOPTIMIZE": "1", "THERMITE_ISOLATION": "none"}
    code, said = ran(judge, desk.folder, **env)
    assert code == 1
    assert "build: build outputs missing: out/bench" in said
