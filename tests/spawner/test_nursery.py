"""The nursery starts the processes of stages, which are the spawner's children, and may die."""

import os
import signal
from pathlib import Path

import psutil
import pytest

from tests.spawner.conftest import Runner
from thermite.rig.stages import Stages
from thermite.rig.start import FOLDER
from thermite.spawner.nursery import Nursery


def own_spawner() -> psutil.Process:
    mine = [one for one in psutil.Process().children() if str(FOLDER) in one.cmdline()]
    return max(mine, key=lambda one: (one.create_time(), one.pid))


def nursery_of(spawner: psutil.Process) -> psutil.Process:
    """Return it: what stages inherit it has already, and the spawner's session it has still."""
    while True:  # a stage's process is in that session for its first moment
        found = [
            one
            for one in spawner.children()
            if os.getsid(one.pid) == os.getsid(spawner.pid)
            and Path(f"/proc/{one.pid}/oom_score_adj").read_text() == "800\n"
        ]
        if len(found) == 1:
            return found[0]


def test_a_stage_is_the_spawners_own_child(run: Runner) -> None:
    parent = int(run.argv("python3", "-I", "-S", "-c", "import os; print(os.getppid())").stdout)
    assert parent == own_spawner().pid


def test_stages_go_on_when_somebody_has_ended_the_nursery(run: Runner) -> None:
    spawner = own_spawner()
    for moment in ("with a process ready", "with none"):
        first = nursery_of(spawner)
        os.kill(first.pid, signal.SIGKILL)
        for _ in range(2):  # the one that is ready already, and one that a new nursery makes
            result = run.sh("echo on")
            assert (result.exit_code, result.stdout) == (0, b"on\n"), moment
        assert nursery_of(spawner).pid != first.pid
    assert not [one for one in spawner.children() if one.status() == psutil.STATUS_ZOMBIE]


def test_a_nursery_that_stands_still_is_not_waited_for_for_ever() -> None:
    nursery = Nursery([lambda _line, _parent, _kept: os._exit(0)], lambda: None, answers_s=0.2)
    try:
        os.kill(nursery.pid, signal.SIGSTOP)
        with (asked := nursery.ask(0, cpus=frozenset())).line:
            with pytest.raises(TimeoutError):
                nursery.born(asked, by_helper=False)
            os.kill(nursery.pid, signal.SIGCONT)
            assert nursery.born(asked, by_helper=False).pid == asked.pid
            os.waitpid(asked.pid or 0, 0)
    finally:
        nursery.close()


def test_the_nursery_leaves_with_the_spawner(rig: Stages) -> None:
    spawner = own_spawner()
    with rig.slot("run-0") as slot:
        Runner(rig, slot).sh("true")
    children = spawner.children()
    spawner.kill()
    gone, alive = psutil.wait_procs(children, timeout=20)
    assert (len(gone), alive) == (len(children), [])


def test_stages_go_on_when_somebody_has_ended_all_that_waits_for_them(run: Runner) -> None:
    """A stage of the same user can, and so can a machine that is short of memory."""
    spawner = own_spawner()
    for _ in range(3):
        assert run.sh("echo on").stdout == b"on\n"
        nursery = nursery_of(spawner).pid
        waiting: list[psutil.Process] = []
        while len(waiting) < 2:  # the attendant, and the next stage's process once it is made
            waiting = [one for one in spawner.children() if one.pid != nursery]
        for one in waiting:
            os.kill(one.pid, signal.SIGKILL)
        while not all(has_ended(one) for one in waiting):
            pass  # a signal takes a moment, and what has an order already is that stage
        result = run.sh("echo on")
        assert (result.exit_code, result.stdout) == (0, b"on\n")
    assert not [one for one in spawner.children() if one.status() == psutil.STATUS_ZOMBIE]


def has_ended(one: psutil.Process) -> bool:
    try:
        return one.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
