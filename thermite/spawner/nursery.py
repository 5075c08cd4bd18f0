"""The nursery: a process that does nothing but start the process of every stage.

A fork of the spawner's own would cost it twice: its page tables are copied, and afterwards each
page that it writes in, some 600 a stage. The nursery writes in a few dozen. What it starts are
the spawner's children and not its own (CLONE_PARENT), which the spawner stamps, reaps and proves
gone; what all stages have alike is set here, once.

    spawner ── nursery     takes a line and a word, says a pid
            └─ stage       or its helper (`own_pids`): waits on that line for its order
"""

import contextlib
import os
import signal
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

from . import linux, namespaces
from .ahead import BESIDE, LINE_FD, STARTED, Ahead, Init, fork_ahead
from .networks import Networks
from .seccomp import Network

Duty: TypeAlias = Callable[[socket.socket, int, int | None], None]
"""What a stage's process does: it gets its line, the spawner's pid and the descriptor of a network
that it may join, and never returns."""

_NETWORK_FD: Final = LINE_FD + 1
_BORN: Final = struct.Struct("=i")
_ANSWERS_S: Final = 10.0
"""Much slack: a fork takes a millisecond, and on a machine out of breath hundreds of them."""
_FAILED: Final = -1


@dataclass(frozen=True)
class Kind:
    """What a stage's process must know before its order comes: its network, and what it reads."""

    network: Network = "none"
    reach: tuple[str, ...] = ()


PLAIN: Final = Kind()
"""What nearly every stage is."""


@dataclass
class Asked:
    """A process that was asked for, and its pid once the nursery has said it."""

    line: socket.socket
    pid: int | None = None


class Nursery:
    """The spawner's end of it."""

    def __init__(
        self,
        duties: Sequence[Duty],
        prepare: Callable[[], None],
        *,
        answers_s: float = _ANSWERS_S,
    ) -> None:
        """Start one.

        duties: of a stage's process, one for each kind; prepare: called once, before anything is
        asked for; answers_s: how long an answer may take.
        """
        self._one = fork_ahead(lambda line, parent: _serve(duties, prepare, line, parent))
        self._one.line.settimeout(answers_s)
        self._asked: deque[Asked] = deque()
        self.networks = Networks()

    @property
    def pid(self) -> int:
        """Its own process."""
        return self._one.pid

    def ask(self, kind: int, *, cpus: frozenset[int], may_join: bool = False) -> Asked:
        """Ask for a process, to be made on other CPUs than this one's, and don't wait.

        kind: the number of its duty; may_join: it can do with a network that was another's.

        Raises:
            OSError: the nursery is gone.
        """
        if cpus:
            os.sched_setaffinity(self.pid, cpus)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        kept = self.networks.take() if may_join else []
        try:
            socket.send_fds(self._one.line, [bytes([kind])], [theirs.fileno(), *kept])
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
            for network in kept:
                os.close(network)
        asked = Asked(ours)
        self._asked.append(asked)
        return asked

    def born(self, asked: Asked, *, by_helper: bool) -> Ahead:
        """Wait for a process that was asked for.

        A helper that could not start the two is returned itself: what it tells is on the line.

        Raises:
            ConnectionError, TimeoutError: the nursery is gone, or stands still.
            OSError: the process could not be made, or is gone already.
        """
        while asked.pid is None:
            told = self._one.line.recv(_BORN.size)
            if not told:
                raise BrokenPipeError("the nursery is gone")
            (self._asked.popleft().pid,) = _BORN.unpack(told)
        if asked.pid == _FAILED:
            raise BlockingIOError("no further process can be made")
        if by_helper:
            found = _started(asked.line)
            if found is not None:  # the helper is buried as an orphan is, at its end
                init, stage, network = found
                asked.line.settimeout(0)
                try:
                    inside = Init(init, os.pidfd_open(init))
                    return Ahead(stage, os.pidfd_open(stage), asked.line, inside, network)
                except OSError:
                    if network is not None:
                        os.close(network)
                    raise
        asked.line.settimeout(0)
        return Ahead(asked.pid, os.pidfd_open(asked.pid), asked.line)

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._one.pidfd, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self._one.close()
        self.networks.close()


def _started(line: socket.socket) -> tuple[int, int, int | None] | None:
    """Return whom a helper has started, init and stage, and the descriptor of their network.

    None when it tells of a failure.
    """
    told = b""
    line.settimeout(_ANSWERS_S)
    with contextlib.suppress(OSError):
        told = line.recv(STARTED.size, socket.MSG_PEEK)
    if told[:1] != BESIDE:
        return None
    _, fds, _, _ = socket.recv_fds(line, STARTED.size, 1, socket.MSG_CMSG_CLOEXEC)
    _, init, stage = STARTED.unpack(told)
    return init, stage, next(iter(fds), None)


def _serve(
    duties: Sequence[Duty], prepare: Callable[[], None], line: socket.socket, parent: int
) -> NoReturn:
    """Start a process for every word, until the spawner hangs up."""
    prepare()
    while True:
        word, fds, _, _ = socket.recv_fds(line, 1, 2)
        if not word:
            os._exit(0)
        try:
            pid = namespaces.fork_beside()
        except OSError:
            pid = _FAILED
        if pid == 0:
            _begin(duties[word[0]], line, fds, parent)
        for fd in fds:
            os.close(fd)
        line.send(_BORN.pack(pid))


def _begin(duty: Duty, line: socket.socket, fds: Sequence[int], parent: int) -> NoReturn:
    """Be the process that was asked for."""
    own, *kept = fds
    try:
        os.dup2(own, line.detach(), inheritable=False)
        network = os.dup2(kept[0], _NETWORK_FD, inheritable=False) if kept else None
        linux.close_from(LINE_FD + 1 + len(kept))
        linux.die_with_parent(signal.SIGKILL, parent)
        duty(socket.socket(fileno=LINE_FD), parent, network)
    finally:
        os._exit(126)
