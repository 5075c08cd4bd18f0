"""The spawner's own short-lived forks: each with an identity, few descriptors and one duty.

A fork keeps the descriptors it was given, from 3 on in their order, and a pipe to say its
result through; everything else is closed. It never returns into the spawner's code.
"""

import errno
import fcntl
import gc
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from . import linux
from .child import Identity, take_identity
from .landlock import Ruleset
from .loop import Step, Until

Duty: TypeAlias = Callable[[Sequence[int], Callable[[bytes], None]], None]
"""What a fork does: descriptors given, a way to say bytes to the parent."""

_FIRST: Final = 3
_SAFE_FD: Final = 20
_MOST_SAID: Final = 1 << 16
FAILED: Final = b"!"
NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT)
"""Errors whose remedy is room on a disk."""
"""First byte of what a fork says when its duty failed; a text follows."""


@dataclass(frozen=True)
class Garb:
    """What a fork wears: identity, capabilities it keeps, CPUs, confinement, SCHED_FIFO (0: no).

    program: a filter of system calls.
    """

    identity: Identity | None
    keep: int = 0
    cpus: frozenset[int] = frozenset()
    rules: Ruleset | None = None
    realtime: int = 0
    program: bytes | None = None


@dataclass
class Fork:
    """A running fork; said grows while it is waited for."""

    pid: int
    pidfd: int
    said_fd: int
    said: bytes = b""


def fork(duty: Duty, fds: Sequence[int], garb: Garb) -> Fork:
    """Fork a process that does one duty and leaves."""
    said_read, said_write = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        os.close(said_read)
        os.close(said_write)
        raise
    if pid == 0:
        try:
            gc.disable()
            _do(duty, fds, said_write, garb, parent)
        finally:
            os._exit(1)
    os.close(said_write)
    os.set_blocking(said_read, False)
    return Fork(pid, os.pidfd_open(pid), said_read)


def _do(duty: Duty, fds: Sequence[int], say_fd: int, garb: Garb, parent: int) -> None:
    for caught in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(caught, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    null = os.open("/dev/null", os.O_RDWR)
    wanted = (null, null, null, *fds, say_fd)
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _SAFE_FD) for fd in wanted]
    for number, fd in enumerate(moved):
        os.dup2(fd, number, inheritable=False)
    mine = range(_FIRST, _FIRST + len(fds))
    say_fd = _FIRST + len(fds)

    def say(text: bytes) -> None:
        view = memoryview(text)
        while view:
            view = view[os.write(say_fd, view) :]

    try:
        _dress(garb, parent)
        linux.close_from(say_fd + 1)
        duty(mine, say)
    except Exception as error:  # noqa: BLE001 - told to the parent, which raises it
        say(FAILED + words_of(error).encode("utf-8", "replace")[:2000])
        os._exit(1)
    os._exit(0)


def _dress(garb: Garb, parent: int) -> None:
    policy = os.SCHED_FIFO if garb.realtime else os.SCHED_OTHER
    os.sched_setscheduler(0, policy, os.sched_param(garb.realtime))
    if garb.cpus:
        os.sched_setaffinity(0, garb.cpus)
    if garb.identity is not None:
        take_identity(garb.identity, garb.keep)
    else:
        linux.keep_capabilities(garb.keep)
    linux.forbid_new_privileges()
    linux.die_with_parent(signal.SIGKILL, parent)
    if garb.rules is not None:
        garb.rules.enforce()
    if garb.program is not None:
        linux.install_filter(garb.program)


def finished(one: Fork, deadline: float | None) -> Step[bool]:
    """Wait for a fork to leave, gathering what it says; false when it had to be killed."""
    in_time = True
    open_fds = {one.said_fd, one.pidfd}
    while open_fds:
        ready = yield Until(tuple(open_fds), deadline)
        if one.said_fd in ready and not _heard(one):
            open_fds.discard(one.said_fd)
        if one.pidfd in ready:
            open_fds.clear()
        if in_time and deadline is not None and time.monotonic() >= deadline:
            signal.pidfd_send_signal(one.pidfd, signal.SIGKILL)
            in_time, deadline = False, None
    while _heard(one):
        pass
    end(one)
    return in_time


def _heard(one: Fork) -> bool:
    """Take in what there is to read; false at the end, or when nothing is there."""
    try:
        text = os.read(one.said_fd, _MOST_SAID)
    except BlockingIOError:
        return False
    if len(one.said) < _MOST_SAID:
        one.said += text
    return bool(text)


def end(one: Fork) -> int:
    """Reap a fork that has left and close what belongs to it; return its wait status."""
    _, status = os.waitpid(one.pid, 0)
    os.close(one.pidfd)
    os.close(one.said_fd)
    return status


def words_of(error: Exception) -> str:
    """Return an error in words; of a disk that is full no more than that."""
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return os.strerror(error.errno)
    return f"{type(error).__name__}: {error}"


def said_of(error: OSError) -> str:
    """Return an error of this process's own in words, with what to do about a full disk."""
    if error.errno in NO_ROOM and isinstance(error.filename, str):
        return f"{os.strerror(error.errno)}: make room in {os.path.dirname(error.filename)}"
    return str(error)


def trouble(one: Fork) -> str | None:
    """Return what went wrong in a finished fork's duty, None when nothing did."""
    if one.said.startswith(FAILED):
        return one.said[len(FAILED) :].decode("utf-8", "replace")
    return None
