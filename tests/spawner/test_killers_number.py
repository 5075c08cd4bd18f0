"""The number of a rig's killer is that rig's alone: a killer ends whoever else has it.

Another rig's start once tried the first number of the range, which is often a killer's: a stage
that ended just then could not be ended, and its slot was closed.
"""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.leased import few_uids
from tests.namespaced import NOBODY, OTHER_SLOT, UNSHARE, Namespace, possible
from tests.spawner.conftest import Runner
from thermite.errors import InfrastructureError
from thermite.rig.stages import Stages
from thermite.rig.start import spawner

TRIED = """
import sys
from thermite.spawner import level, uids
from thermite.spawner.settings import Settings

state, folder, low, high = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
tried = []
level.can_reach = lambda identity, needs: tried.append(identity.uid) or True
settings = Settings(state, state, {"run-0": False, "check": False}, uid_range=(low, high))
leases = uids.Leases(folder, state, low, high)
for name in ("users", "users+namespaces"):
    assert not isinstance(level.level_of(settings, name, leases), str)
assert len(tried) == 4 and all(map(leases.owns, tried)), (tried, leases.held)
print(*sorted(set(tried)))
"""


@pytest.fixture(autouse=True)
def _namespaces() -> None:
    if not possible():
        pytest.skip("no pid namespace can be made here: this needs root and CAP_SYS_ADMIN")


@contextmanager
def rig_with_a_strangers_number(place: Path, *, ended: int = NOBODY) -> Iterator[Stages]:
    """A rig whose killer has the number of one of the bystanders."""
    leases = place / "run/uids"
    leases.mkdir(parents=True, mode=0o700)
    (leases / str(OTHER_SLOT)).write_text(f"{place / 'rig'}\nreaper\n")
    with (
        Namespace(ended=ended) as ns,
        spawner(
            place / "rig", within=ns.prefix, isolation="users", run_dir=place / "run"
        ) as stages,
    ):
        yield stages
        assert ns.bystanders() == 3 - (ended == OTHER_SLOT)


def test_a_starting_rig_tries_no_number_that_it_has_not_leased(place: Path) -> None:
    low, high = few_uids(12)
    leases = place / "run/uids"
    leases.mkdir(parents=True, mode=0o700)
    for uid in (low, high):  # of a rig that is there: the first one its killer's
        (leases / str(uid)).write_text(f"{place}\nthermite\n")
    argv = [sys.executable, "-c", TRIED, str(place), str(leases), str(low), str(high)]
    done = subprocess.run([*UNSHARE, *argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not {low, high} & {int(word) for word in done.stdout.split()}


def test_nothing_is_killed_beside_a_stranger_who_stays_and_the_slot_says_why(place: Path) -> None:
    words = rf"has uid {OTHER_SLOT}, which this rig leased for its killer: .*THERMITE_UID_RANGE"
    with rig_with_a_strangers_number(place) as stages:
        for _ in range(2):
            with pytest.raises(InfrastructureError, match=words), stages.slot("run-0") as slot:
                Runner(stages, slot).sh("sleep 100 & true")


def test_a_stranger_who_leaves_is_waited_for(place: Path) -> None:
    def leave() -> None:
        time.sleep(0.3)
        below = psutil.Process().children(recursive=True)
        strangers = [one for one in below if one.uids().real == OTHER_SLOT]
        max(strangers, key=psutil.Process.create_time).kill()  # rigs of other tests have theirs

    with rig_with_a_strangers_number(place, ended=OTHER_SLOT) as stages:
        leaving = threading.Thread(target=leave)
        with stages.slot("run-0") as slot:
            leaving.start()
            ended = [Runner(stages, slot).sh("sleep 100 & true")]
            leaving.join()
            ended.append(Runner(stages, slot).sh("true"))
    assert [one.isolation.proof and one.isolation.proof.survivors for one in ended] == [0, 0]
