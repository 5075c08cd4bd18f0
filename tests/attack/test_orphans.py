"""What stages leave behind is buried while the rig goes on, not when it ends (B8)."""

import time

import psutil
import pytest

from tests.levels import LEVELS, OWN_USER, Rigs
from tests.requirement import shows
from tests.spawner.conftest import Runner
from thermite.schema.stage import LevelName

STAGES = 20
ORPHANS = 5
PROCESSES = 2 * ORPHANS
"""What one stage needs; zombies of an earlier one would use it up."""
KILLERS = 1
"""What ended the last stage's is one itself, and is buried by the next that is needed."""
PATIENCE_S = 30.0
LEAVES = f"""
import os, time
ready, done = os.pipe()
for number in range({ORPHANS}):
    if os.fork() == 0:
        os.setsid()
        os.write(done, b"x")
        if number % 2:
            time.sleep(99)
        os._exit(0)
left = {ORPHANS}
while left: left -= len(os.read(ready, left))
print("left")
"""
"""Some have ended before it does, unwaited for, and the others have to be killed."""


def zombies() -> list[psutil.Process]:
    """Whoever has ended below this process and was not waited for, in whatever namespace."""
    found = []
    for one in psutil.Process().children(recursive=True):
        try:
            found += [one] if one.status() == psutil.STATUS_ZOMBIE else []
        except psutil.NoSuchProcess:
            continue
    return found


@shows("B8")
@pytest.mark.parametrize("level", LEVELS)
def test_orphans_of_many_stages_do_not_add_up(rigs: Rigs, level: LevelName) -> None:
    """20 stages for the row's 2,000 attempts, with a limit that two stages' orphans would pass."""
    rig = rigs.at(level)
    limits = {"processes": PROCESSES} if level in OWN_USER else {}
    counts = [len(zombies())]  # of other tests' rigs, which are idle
    for number in range(STAGES):
        with rig.slot("run-0") as slot:
            done = Runner(rig, slot).python(LEAVES, **limits)
            assert (done.exit_code, done.stdout) == (0, b"left\n"), done.stderr[-500:]
            assert done.isolation.proof is not None
            assert done.isolation.proof.survivors == 0
        counts += [len(zombies())] if number % 5 == 0 else []
    most = counts[0] + KILLERS
    assert max(counts) <= most + ORPHANS, counts
    until = time.monotonic() + PATIENCE_S
    while len(zombies()) > most and time.monotonic() < until:
        time.sleep(0.02)
    assert len(zombies()) <= most
