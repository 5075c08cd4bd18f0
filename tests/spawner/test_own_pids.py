"""Process 1 of a stage's pid namespace is the spawner's to bury, however long its helper stays."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from typing import NoReturn

import psutil
import pytest

from thermite.spawner import namespaces, own_pids
from thermite.spawner.ahead import Ahead
from thermite.spawner.nursery import Nursery

LINGERS_S = 60.0


def linger(status: int) -> NoReturn:  # noqa: ARG001 - as it is called
    """Be a helper that a loaded machine gives no time to leave."""
    while True:
        time.sleep(LINGERS_S)


def begin(line: socket.socket, parent: int, _kept: int | None) -> NoReturn:
    """Be a helper, and then the stage of its namespace."""
    leave, os._exit = os._exit, linger
    try:
        own = namespaces.NEW_PIDS | (namespaces.NEW_USER if os.getuid() else 0)
        namespaces.unshare(own)
        namespaces.mount = lambda *_: None
        own_pids.enter(line, os.pidfd_open(parent))
        while True:
            signal.pause()
    finally:
        leave(1)


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    found = Nursery([begin], lambda: None)
    yield found
    found.close()


@pytest.fixture
def born(nursery: Nursery) -> Iterator[Ahead]:
    asked = nursery.ask(0, cpus=frozenset())
    one = nursery.born(asked, by_helper=True)
    assert asked.pid is not None
    if one.init is None:
        os.waitpid(asked.pid, 0)
        one.close()
        pytest.skip("no pid namespace can be made here")
    assert psutil.Process(asked.pid).status() != psutil.STATUS_ZOMBIE
    yield one
    one.bury()  # whatever a test left of them
    os.kill(asked.pid, signal.SIGKILL)
    os.waitpid(asked.pid, 0)


def test_it_can_be_buried_while_its_helper_still_leaves(born: Ahead) -> None:
    assert born.init is not None
    assert {psutil.Process(one.pid).ppid() for one in (born, born.init)} == {os.getpid()}
    signal.pidfd_send_signal(born.init.pidfd, signal.SIGKILL)
    for one in (born, born.init):
        _, status = os.waitpid(one.pid, 0)
        assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
