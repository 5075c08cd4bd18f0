"""A stage's network may have been another's: never with anything of it, or while it is there."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.levels import Rigs, all_rigs
from tests.spawner.conftest import Runner
from thermite.rig.stages import Door, Slot, Stages
from thermite.schema.stage import LevelName, Limits
from thermite.spawner import namespaces, networks

OWN_VIEW: LevelName = "namespaces" if os.getuid() else "users+namespaces"
STAGES = 6
WHICH = "readlink /proc/self/ns/net"
IN_A_CIRCLE = """
import array, os, socket
print(os.readlink("/proc/self/ns/net"))
left = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
left.bind("\\0left")
left.listen()
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
sent = array.array("i", [a.fileno(), b.fileno(), left.fileno()])
a.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)])
"""
"""What a stage can leave in there at most: a socket that waits in itself to be received."""
SEEN = """
import socket
print(open("/proc/self/net/unix").read().count("\\n"))
try:
    socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect("\\0left")
except ConnectionRefusedError:
    print("nobody")
"""


@pytest.fixture(scope="module")
def rigs() -> Iterator[Rigs]:
    with all_rigs() as made:
        yield made


@pytest.fixture
def viewed(rigs: Rigs) -> Stages:
    return rigs.at(OWN_VIEW)


def network(rig: Stages, slot: Slot) -> bytes:
    return Runner(rig, slot).sh(WHICH).stdout


def test_stages_one_after_the_other_take_turns_with_a_few(viewed: Stages) -> None:
    with viewed.slot("run-0") as slot:
        seen = [network(viewed, slot) for _ in range(STAGES)]
    assert 1 <= len(set(seen)) < STAGES / 2
    assert all(one.startswith(b"net:[") for one in seen)
    assert str(Path("/proc/self/ns/net").readlink()).encode() not in b"".join(seen)


def test_stages_that_run_at_once_have_different_ones(viewed: Stages) -> None:
    with viewed.slot("worker-0") as worker, viewed.slot("run-0") as slot:
        told: list[bytes] = []
        text = f"{WHICH}; touch begun; sleep 60"
        thread = threading.Thread(
            target=lambda: told.append(Runner(viewed, worker).sh(text, timeout_s=60).stdout)
        )
        thread.start()
        while thread.is_alive() and not (worker.folder / "begun").exists():
            pass
        seen = [network(viewed, slot) for _ in range(STAGES)]
        worker.stop()
        thread.join()
    assert told[0].startswith(b"net:[")
    assert told[0] not in seen


def test_what_a_stage_leaves_in_a_socket_the_next_one_never_meets(viewed: Stages) -> None:
    with viewed.slot("run-0") as slot:
        run = Runner(viewed, slot)
        for _ in range(STAGES):
            assert run.python(IN_A_CIRCLE).exit_code == 0
            assert run.python(SEEN).stdout.split() == [b"1", b"nobody"]


def test_one_that_had_a_gateway_in_it_is_nobody_elses(viewed: Stages) -> None:
    with viewed.slot("worker-0") as slot:
        before = {network(viewed, slot) for _ in range(STAGES)}
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            door = Door(theirs.fileno(), 8422)
            env = {"PATH": viewed.path_variable}
            limits = Limits(timeout_s=20)
            done = slot.run(["sh", "-c", WHICH], env=env, limits=limits, door=door)
            assert done.isolation.network.endswith("+gateway")
        after = {network(viewed, slot) for _ in range(STAGES)}
    assert done.stdout.startswith(b"net:[")
    assert done.stdout not in before | after


def in_a_child(duty: Callable[[], bytes]) -> bytes:
    """Return what a process of its own says that has a user namespace and a network."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            namespaces.unshare(namespaces.NEW_USER)
            os.write(write, duty())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as told:
        said = told.read()
    os.waitpid(pid, 0)
    if not said:
        pytest.skip("no user namespace can be made here")
    return said


def test_one_that_is_empty_is_joined_and_one_with_a_socket_is_not() -> None:
    def duty() -> bytes:
        first = networks.joined(None)
        again = networks.joined(first)
        with socket.socket(socket.AF_UNIX):
            filled = networks.joined(first)
        last = networks.joined(first)
        return b"%d" % ((again == first) + 2 * (filled not in {first, None}) + 4 * (last == first))

    assert in_a_child(duty) == b"7"


def test_one_that_another_owns_is_not_joined_and_where_none_can_be_made_there_is_none() -> None:
    def duty() -> bytes:
        mine = os.open("/proc/self/ns/net", os.O_RDONLY)  # the machine's
        made = networks.joined(mine)
        is_new = made not in {mine, None}
        return b"1" if is_new else b"0"

    if os.getuid() == 0:
        pytest.skip("root may join any: the machine's is never handed on")
    assert in_a_child(duty) == b"1"
    assert networks.joined(None) is None
