"""Whether the demo asks for real-time runs: only where the kernel grants them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GROUPS = Path("/sys/fs/cgroup/cpu")
ASK = "from thermite.cli.demo_rig import can_be_realtime; print(can_be_realtime())"


@pytest.fixture
def no_share() -> Iterator[Path]:
    """A control group that has no share of real time, as a fresh one has."""
    group = GROUPS / f"thermite-test-{os.getpid()}"
    if not (GROUPS / "cpu.rt_runtime_us").exists() or not os.access(GROUPS, os.W_OK):
        pytest.skip("no control group without real time can be made here")
    group.mkdir()
    (group / "cpu.rt_runtime_us").write_text("0")
    yield group
    group.rmdir()


def ask(group: Path) -> str:
    code = f"open({str(group / 'tasks')!r}, 'w').write('0')\n{ASK}"
    env = {**os.environ, "THERMITE_ISOLATION": "auto"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_capability_is_not_taken_for_a_share_of_real_time(no_share: Path) -> None:
    assert ask(no_share) == "False"
