"""A stage that takes all process numbers there are is ended like any other, and leaves nothing.

All happens in a pid namespace with a limit of its own, which Linux has from 6.14 on.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attack.candidates import BOMB
from tests.levels import OWN_USER
from tests.namespaced import Namespace, possible
from tests.spawner.conftest import Runner, live
from thermite.errors import InfrastructureError
from thermite.rig.stages import Stages
from thermite.rig.start import spawner

FEW = 400
"""Process numbers: the kernel gives out no fewer than some 300."""
NARROW = ["/bin/sh", "-c", f'echo {FEW} > /proc/sys/kernel/pid_max && exec "$0" "$@"']
LEAVER = """
import os, time
if os.fork() == 0:
    os.setsid()
    time.sleep(99)
print("ready", file=open("ready", "w"))
while True:
    try:
        child = os.fork()
    except BlockingIOError:
        break
    if child == 0: os._exit(0)
    os.waitpid(child, 0)
    time.sleep(0.001)
open("/tmp/thermite-left-by-a-stage", "w").close()
"""


@pytest.fixture(params=OWN_USER)
def narrow_rig(request: pytest.FixtureRequest, place: Path) -> Iterator[Stages]:
    version = tuple(map(int, os.uname().release.split(".")[:2]))
    if not possible() or version < (6, 14):
        pytest.skip("this needs root, CAP_SYS_ADMIN and Linux 6.14")
    with (
        Namespace() as ns,
        spawner(
            place / "rig",
            within=[*ns.prefix, *NARROW],
            isolation=request.param,
            run_dir=place / "run",
        ) as stages,
    ):
        yield stages
        assert ns.bystanders() == 3


def test_a_bomb_that_takes_every_process_number_is_ended_and_leaves_nothing(
    narrow_rig: Stages,
) -> None:
    """Its killer, and what sweeps after the other stage, could not be made at their first try."""
    with narrow_rig.slot("builder-0") as other, narrow_rig.slot("run-0") as slot:
        leaver, bomb = Runner(narrow_rig, other), Runner(narrow_rig, slot)

        def leave() -> None:
            with contextlib.suppress(InfrastructureError):  # a sweep may not be to be had
                leaver.python(LEAVER)

        uid = leaver.sh("id -u").stdout
        thread = threading.Thread(target=leave)
        thread.start()
        while not (other.folder / "ready").exists() and thread.is_alive():
            pass
        said = bomb.python(BOMB, timeout_s=1.0)
        thread.join()
        assert said.killed == "timeout"
        assert said.isolation.proof is not None
        assert said.isolation.proof.survivors == 0
        assert live(said.isolation.uid) == live(int(uid)) == 0
        for runner in (leaver, bomb):
            honest = runner.sh("ls /tmp")
            assert b"thermite-left-by-a-stage" not in honest.stdout
            assert honest.exit_code == 0
