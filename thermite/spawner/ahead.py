"""Processes forked ahead of their use: a fork's cost is not paid by whoever waits.

A fork in Python costs less than the pages that it then copies one by one, so one stage
process and one killer always stand ready, have gone through their code once, and wait for
their order on a line of their own. Each serves once.
"""

import contextlib
import fcntl
import gc
import os
import signal
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from . import linux

LINE_FD: Final = 3
KEPT_FD: Final = 4
"""A second descriptor that such a process may keep: a ruleset, say."""
_SAFE_FD: Final = 20
STARTED: Final = struct.Struct("=1sii")
"""How a helper tells of what it has started: `BESIDE`, the pids of an init and of a stage."""
BESIDE: Final = b"B"
_HELPED_S: Final = 20.0


@dataclass
class Init:
    """Process 1 of a stage's pid namespace: its end is the end of everything in there."""

    pid: int
    pidfd: int

    def close(self) -> None:
        """Close what belongs to it, once it has been reaped."""
        os.close(self.pidfd)


@dataclass
class Ahead:
    """One that waits; whatever is written to the line is its order.

    is_helper: it is the one that starts the one that waits, which `started` tells of.
    """

    pid: int
    pidfd: int
    line: socket.socket
    init: Init | None = None
    is_helper: bool = False

    def close(self) -> None:
        """Close what belongs to it, once it has been reaped."""
        os.close(self.pidfd)
        self.line.close()


def fork_ahead(
    duty: Callable[[socket.socket, int], None], kept: int = -1, *, is_helper: bool = False
) -> Ahead:
    """Fork a process that waits for its order.

    duty: gets the line and the spawner's pid, and never returns normally;
    kept: a descriptor that it has as `KEPT_FD`, if not negative;
    is_helper: it starts an init and the one that waits, as children of this process, and leaves.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _wait(duty, theirs.fileno(), kept, parent)
        finally:
            os._exit(126)
    theirs.close()
    ours.settimeout(0)
    return Ahead(pid, os.pidfd_open(pid), ours, is_helper=is_helper)


def started(helper: Ahead) -> Ahead:
    """Wait until a helper has left, and return whom it started; itself when it tells of a failure.

    What it tells then stays on the line, for whoever waits there for a word.

    Raises:
        OSError: who was started is gone already.
    """
    told = b""
    helper.line.settimeout(_HELPED_S)
    with contextlib.suppress(OSError):
        told = helper.line.recv(STARTED.size, socket.MSG_PEEK)
    if told[:1] != BESIDE:
        helper.line.settimeout(0)
        return helper
    helper.line.recv(STARTED.size)
    helper.line.settimeout(0)
    os.waitpid(helper.pid, 0)
    os.close(helper.pidfd)
    _, init, stage = STARTED.unpack(told)
    return Ahead(stage, os.pidfd_open(stage), helper.line, Init(init, os.pidfd_open(init)))


def _wait(duty: Callable[[socket.socket, int], None], line: int, kept: int, parent: int) -> None:
    gc.disable()
    signal.set_wakeup_fd(-1)
    for caught in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(caught, signal.SIG_DFL)
    null = os.open("/dev/null", os.O_RDWR)
    wanted = [null, null, null, line] + ([kept] if kept >= 0 else [])
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _SAFE_FD) for fd in wanted]
    for number, fd in enumerate(moved):
        os.dup2(fd, number, inheritable=number < LINE_FD)
    linux.close_from(len(wanted))
    linux.die_with_parent(signal.SIGKILL, parent)
    duty(socket.socket(fileno=LINE_FD), parent)
