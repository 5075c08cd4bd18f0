"""Processes forked ahead of their use: a fork's cost is not paid by whoever waits.

A fork in Python costs less than the pages that it then copies one by one, so one stage
process (made by the `nursery`) and one killer always stand ready, have gone through their code
once, and wait for their order on a line of their own. Each serves once.
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
_SAFE_FD: Final = 20
STARTED: Final = struct.Struct("=1sii")
"""How a helper tells of what it has started: `BESIDE`, the pids of an init and of a stage."""
BESIDE: Final = b"B"


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

    network: a descriptor of its network, where another may have it afterwards.
    """

    pid: int
    pidfd: int
    line: socket.socket
    init: Init | None = None
    network: int | None = None

    @property
    def has_ended(self) -> bool:
        """Whether it waits no more; it is still to be buried, unless it ended before it was known.

        Such a one was buried as an orphan.
        """
        try:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
        return found is not None

    def close(self) -> None:
        """Close what belongs to it, once it has been reaped."""
        os.close(self.pidfd)
        self.line.close()
        if self.network is not None:
            os.close(self.network)

    def bury(self) -> set[int]:
        """End and bury it and its init, where it never had an order; return their numbers."""
        waits: list[Ahead | Init] = [self] if self.init is None else [self, self.init]
        for each in waits:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(each.pidfd, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):  # buried before it was known
                os.waitpid(each.pid, 0)
            each.close()
        return {each.pid for each in waits}


def fork_ahead(duty: Callable[[socket.socket, int], None]) -> Ahead:
    """Fork a process that waits for its order.

    duty: gets the line and the spawner's pid, and never returns normally.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _wait(duty, theirs.fileno(), parent)
        finally:
            os._exit(126)
    theirs.close()
    ours.settimeout(0)
    return Ahead(pid, os.pidfd_open(pid), ours)


def _wait(duty: Callable[[socket.socket, int], None], line: int, parent: int) -> None:
    gc.disable()
    signal.set_wakeup_fd(-1)
    for caught in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(caught, signal.SIG_DFL)
    null = os.open("/dev/null", os.O_RDWR)
    wanted = [null, null, null, line]
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _SAFE_FD) for fd in wanted]
    for number, fd in enumerate(moved):
        os.dup2(fd, number, inheritable=number < LINE_FD)
    linux.close_from(len(wanted))
    linux.die_with_parent(signal.SIGKILL, parent)
    duty(socket.socket(fileno=LINE_FD), parent)
