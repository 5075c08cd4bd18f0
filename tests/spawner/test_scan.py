"""What /proc says of processes that hide or merely work in odd places."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.spawner.family import WAIT, Tree
from tests.spawner.relay import MIB, relay
from thermite.spawner import scan
from thermite.spawner.memory import Memory

DEEP = """
import ctypes, os, sys, time
os.chdir(sys.argv[1])
for _ in range(int(sys.argv[2])):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)
print("there", flush=True)
time.sleep(600)
"""
BEYOND_A_PATH = 30


@contextmanager
def working_in(folder: Path, levels: int) -> Iterator[int]:
    """A process without new privileges, so many levels below a folder."""
    folder.mkdir(exist_ok=True)
    argv = [sys.executable, "-c", DEEP, str(folder), str(levels)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, env={}) as one:
        try:
            assert one.stdout is not None
            assert one.stdout.readline() == b"there\n"
            yield one.pid
        finally:
            one.kill()


@pytest.mark.parametrize("levels", [1, BEYOND_A_PATH])
def test_a_stage_is_found_however_deep_it_works(tmp_path: Path, levels: int) -> None:
    with working_in(tmp_path / "stages", levels) as pid:
        assert scan.staged_below(os.getuid(), f"{tmp_path}/stages") == [pid]


@pytest.mark.parametrize("levels", [1, BEYOND_A_PATH])
def test_who_works_elsewhere_is_no_stage_of_ours(tmp_path: Path, levels: int) -> None:
    (tmp_path / "stages").mkdir()
    with working_in(tmp_path / "elsewhere", levels):
        assert scan.staged_below(os.getuid(), f"{tmp_path}/stages") == []


def test_a_stranger_in_a_folder_beyond_any_path_keeps_no_rig_from_starting(tmp_path: Path) -> None:
    """It did: `[Errno 36] File name too long: b'/proc/…/cwd'`, and the spawner ended."""
    place = tmp_path / "place"
    place.mkdir()
    with working_in(tmp_path / "elsewhere", BEYOND_A_PATH):
        one = Tree(place, WAIT)
        one.until(lambda: bool(one.notes("harness")))
        assert one.stop()[0] == 0


def test_threads_that_hand_over_to_each_other_hide_no_process_and_no_memory() -> None:
    """One look in six took the process for dead, one in 40 its memory for nothing."""
    with relay() as pid:
        assert all(scan.is_alive(pid) for _ in range(300))
        memory = Memory(None, pid, os.getpid(), None, most=1 << 40)
        assert min(memory.held_bytes() for _ in range(300)) > MIB << 20
