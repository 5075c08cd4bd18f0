"""What an auditor and an operator do without: root, a compiler, torch; an auditor even git."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.operator_desk import Desk

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests/golden/ledger"
BLOCKED = """
import importlib.abc, runpy, sys
class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ImportError(name + " is not installed here")
sys.meta_path.insert(0, Refuse())
sys.argv = {argv!r}
runpy.run_module("thermite", run_name="__main__")
"""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A folder for PATH in which there is git and nothing else."""
    tools = tmp_path / "tools"
    tools.mkdir()
    git = shutil.which("git")
    assert git is not None
    (tools / "git").symlink_to(git)
    return tools


def run(
    path: Path, blocked: set[str], *argv: str, cwd: Path, data: Path | None = None
) -> subprocess.CompletedProcess[str]:
    program = BLOCKED.format(blocked=blocked, argv=["thermite", *argv])
    nobody = 65534 if _can_be_nobody() else None
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={"PATH": str(path), "PYTHONPATH": str(ROOT), "THERMITE_DATA": str(data or cwd)},
        check=False,
        timeout=300,
        user=nobody,
        group=nobody,
        extra_groups=None if nobody is None else [],
    )


def _can_be_nobody() -> bool:
    """Whether a plain user can reach interpreter, package and tests here."""
    if os.geteuid() != 0:
        return False
    reach = [sys.executable, "-c", f"open({str(ROOT / 'README.md')!r})"]
    try:
        done = subprocess.run(
            reach, user=65534, group=65534, extra_groups=[], capture_output=True, check=False
        )
    except PermissionError:
        return False
    return done.returncode == 0


def test_an_audit_needs_no_tool_at_all(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    argv = ("audit", str(GOLDEN / "ledger.db"), "--against", str(GOLDEN / "checkpoint-62.txt"))
    done = run(nothing, {"torch", "triton", "git", "psutil"}, *argv, cwd=Path("/"))
    assert done.returncode == 0, done.stderr
    assert "clean" in done.stdout


def test_a_dry_run_of_an_assignment_needs_git_alone(desk: Desk, bare: Path) -> None:
    argv = ("assign", "project/contract.json", "--kit", "kit", "--rig", "bench", "--dry-run")
    program = BLOCKED.format(blocked={"torch", "triton"}, argv=["thermite", *argv])
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=desk.folder,
        env=desk.env | {"PATH": str(bare)},
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "nothing was sent" in done.stdout
