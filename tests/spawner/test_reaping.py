"""Orphans are buried whatever else has ended: each counts against its user's next stage."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import os, sys, time
from types import SimpleNamespace
from thermite.spawner import scan
from thermite.spawner.ground import Ground

def ended(count):
    pids = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        pids.append(pid)
    return pids

ours = ended(1)
orphans = ended(int(sys.argv[1]))
if sys.argv[2] == "no list":
    scan.own_children = lambda: None
Ground.reap(SimpleNamespace(children=set(ours)))
assert scan.children_now() == set(ours), scan.children_now()
os.waitpid(ours[0], 0)
Ground.reap(SimpleNamespace(children=set()))
"""


@pytest.mark.parametrize("told", ["list", "no list"])
@pytest.mark.parametrize("orphans", [0, 1, 40])
def test_a_child_of_ours_that_has_ended_first_hides_no_orphan(orphans: int, told: str) -> None:
    """They stayed until it was waited for, and the next stage's program could not be started."""
    argv = [sys.executable, "-c", PROGRAM, str(orphans), told]
    ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


STORM = """
import os
from types import SimpleNamespace
from thermite.spawner import scan
from thermite.spawner.ground import Ground

for _ in range(1100):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
rounds = 0
while Ground.reap(SimpleNamespace(children=set())):
    rounds += 1
    assert scan.children_now()
print(rounds, scan.children_now())
"""


def test_orphans_that_come_without_end_are_buried_some_at_a_time() -> None:
    """Nothing else is heard meanwhile, not even that a stage's own time is over."""
    argv = [sys.executable, "-c", STORM]
    ran = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.stdout, ran.stderr) == ("1 set()\n", "")
