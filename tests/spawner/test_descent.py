"""Who belongs to a stage without a user of its own: to ask each once tells what a look at all does.

A process of its own is the spawner here: orphans fall to it.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from thermite.spawner import scan
from thermite.spawner.descent import Descent, strangers

STAGE = """
import ctypes, os, sys, threading, time

def start(duty):
    pid = os.fork()
    if pid == 0:
        duty()
        time.sleep(600)
    return pid

def say(*pids):
    os.write(1, b"%s\\n" % " ".join(map(str, map(int, pids))).encode())
    os.read(0, 1)

def main():
    os.setsid()
    say(os.getpid(), other)
    for pids in steps(*os.pipe()):
        say(*pids)

ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
other = start(os.setsid)
start(main)
time.sleep(600)
"""
BY_A_THREAD = """
def steps(told, tell):
    def middle():
        os.write(tell, b"%d %d" % (start(lambda: None), os.getpid()))
    threading.Thread(target=lambda: (start(middle), time.sleep(600))).start()
    yield os.read(told, 99).split()
"""
OF_ITS_SESSION = """
def steps(told, tell):
    def parent():
        os.write(tell, b"%d" % start(lambda: None))
        os._exit(0)
    os.waitpid(start(parent), 0)
    yield os.read(told, 99).split()
"""
OF_ITS_OWN = """
def steps(told, tell):
    def own():
        os.setsid()
        os.write(tell, b"%d" % os.getpid())
    parent = start(lambda: start(own))
    yield parent, os.read(told, 99)
    os.kill(parent, 9)
    os.waitpid(parent, 0)
    yield ()
"""


class Family:
    """A spawner with a stage of several processes, and one that is no stage's."""

    def __init__(self, one: "subprocess.Popen[bytes]") -> None:
        self._one, self.spawner = one, one.pid
        self.main, self.other = self._said()
        self.descent = Descent(self.main, self.spawner, None)
        self.known: set[int] = set()
        assert self.members() == {self.main}

    def _said(self) -> list[int]:
        assert self._one.stdout is not None
        return [int(word) for word in self._one.stdout.readline().split()]

    def step(self) -> list[int]:
        """Let the stage go on to its next step; return the numbers that it says."""
        assert self._one.stdin is not None
        self._one.stdin.write(b"1")
        self._one.stdin.flush()
        return self._said()

    def members(self) -> set[int]:
        """Return whom the next sample meets."""
        self.known = self.descent.members(self.known)
        return self.known

    def look(self) -> set[int]:
        """Return whom a look at every process finds that knows whom the last sample met."""
        return Descent(self.main, self.spawner, None).members(self.known)


@contextmanager
def family(steps: str, *words: str) -> Iterator[Family]:
    argv = [sys.executable, "-I", "-S", "-c", f"{steps}{STAGE}", *words]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as one:
        try:
            yield Family(one)
        finally:
            for pid in scan.below((one.pid,), scan.all_seen()):
                os.kill(pid, signal.SIGKILL)


def test_children_of_every_thread_and_theirs_belong_to_it() -> None:
    with family(BY_A_THREAD) as one:
        made = one.step()
        assert len(made) == 2
        assert one.members() == one.look() == {one.main, *made}


def test_an_orphan_of_its_session_belongs_to_it_and_another_child_of_the_spawner_does_not() -> None:
    with family(OF_ITS_SESSION) as one:
        made = one.step()
        assert len(made) == 1
        assert one.members() == one.look() == {one.main, *made}
        assert scan.seen(one.other) is not None


def test_an_orphan_that_was_once_seen_in_the_tree_belongs_to_it_whatever_its_session() -> None:
    with family(OF_ITS_OWN) as one:
        parent, orphan = one.step()
        assert one.members() == {one.main, parent, orphan}
        assert one.step() == []
        for _ in range(11):  # samples; one of them looks at all
            assert one.members() == {one.main, orphan}


def test_one_that_a_look_at_all_missed_is_found_whatever_its_session() -> None:
    """As where its parent ends between the two being read; it was lost for good."""
    with family(OF_ITS_OWN) as one:
        _, orphan = one.step()
        one.members()
        one.step()
        one.known = {one.main}
        assert one.members() == {one.main, orphan}


def test_a_number_that_is_no_longer_known_is_asked_anew() -> None:
    """Whose descriptor says that it is gone may be another process by now."""
    with family(OF_ITS_SESSION) as one:
        made = one.step()
        assert one.members() == {one.main, *made}
        one.known = {one.main, one.other}  # as if the stage's had ended, and its number been given
        assert one.members() == {one.main, *made, one.other}
        one.known = {one.main}
        assert one.members() == {one.main, *made}


def test_who_may_descend_from_what_ended_meanwhile_is_no_stranger() -> None:
    """7 is a member and 8 another's; 30's parent ended before it could be asked for its own."""
    parents = {20: 7, 21: 8, 22: 21, 30: 29, 31: 30, 2: 0}
    table = {pid: scan.Seen(pid, "S", parent, 1, 1) for pid, parent in parents.items()}
    assert strangers(table, {7, 20}, {8}) == {21, 22, 2}


def asks(call: Callable[[], object]) -> int:
    """Count how many processes are asked for their parent meanwhile."""
    count = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        count += event == "call" and frame.f_code is scan.seen.__code__

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return count


def test_each_is_asked_once_a_second() -> None:
    """But for those that other tests start and end meanwhile."""
    with family(OF_ITS_SESSION) as one:
        one.step()
        one.members()
        everybody = len(scan.pids())
        between = [asks(one.members) for _ in range(8)]
        assert min(between) < everybody / 4
        assert sum(between) < 4 * everybody
        assert asks(one.members) >= len(one.known)
