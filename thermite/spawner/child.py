"""The stage's own process, from the fork to its exec, in the order of isolation 4.1.

Everything that can be prepared is prepared before the fork. After it, the child gives up
what it has in a fixed order, reports that it is ready, waits for the go byte and executes;
a set-up that fails is told through the status pipe and is never the candidate's fault.
"""

import errno
import fcntl
import os
import resource
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from . import linux
from .landlock import Confinement

READY: Final = b"R"
FAILED: Final = b"F"
NOT_EXECUTED: Final = b"X"
OUR_EXEC_ERRORS: Final = frozenset(
    {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY}
)
"""An exec that fails with one of these is the rig's trouble; any other is the candidate's."""

_TRIES: Final = 100
_PAUSE_S: Final = 0.002
"""ETXTBSY lasts while a fork of the copy's writer, on its way to its own exec, still holds it."""

_STATUS_FD: Final = 3
_GO_FD: Final = 4
_CWD_FD: Final = 5
_SAFE_FD: Final = 20
"""Descriptors are first moved from here on, so that none is overwritten on its way to 0–5."""

_MIB: Final = 1 << 20
_OPEN_FILES: Final = (1024, 65536)
_LOCKED_BYTES: Final = 64 * _MIB
_OOM_SCORE: Final = 800


@dataclass(frozen=True)
class Identity:
    """Who a process becomes: all its uids, all its gids, and further groups."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


@dataclass(frozen=True)
class Setup:
    """One stage, ready to be forked; descriptors are the parent's own."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: int
    stdout: int
    stderr: int
    identity: Identity | None
    processes: int | None
    disk_mib: int | None
    cpus: frozenset[int]
    settle_ms: int
    program: bytes | None
    confinement: Confinement
    confine_files: bool
    network: bool


def fork_stage(setup: Setup) -> tuple[int, int, int]:
    """Fork the stage's main process; return its pid, its status pipe and its go pipe."""
    status_read, status_write = os.pipe2(os.O_CLOEXEC)
    go_read, go_write = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _become(setup, status_write, go_read, parent)
        finally:
            os._exit(126)
    os.close(status_write)
    os.close(go_read)
    os.set_blocking(status_read, False)
    return pid, status_read, go_write


def _become(setup: Setup, status: int, go: int, parent: int) -> NoReturn:
    try:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # the interpreter ignores them
            signal.signal(number, signal.SIG_DFL)
        _take_descriptors(setup, status, go)
        _limit(setup)
        _take_identity(setup.identity)
        linux.forbid_new_privileges()
        linux.die_with_parent(signal.SIGKILL, parent)
        setup.confinement.apply(files=setup.confine_files, network=setup.network, scope=True)
        os.fchdir(_CWD_FD)
        linux.close_from(_CWD_FD)
        if setup.program is not None:
            linux.install_filter(setup.program)
        os.umask(0o077)
        found = _candidates(setup.argv[0], setup.env.get("PATH", ""))
        _settle(setup.settle_ms)
    except Exception as error:  # noqa: BLE001 - told to the parent, which raises it
        os.write(_STATUS_FD, FAILED + f"{type(error).__name__}: {error}".encode()[:500])
        os._exit(126)
    os.write(_STATUS_FD, READY)
    if os.read(_GO_FD, 1) != b"g":
        os._exit(126)
    _execute(found, setup)


def _take_descriptors(setup: Setup, status: int, go: int) -> None:
    """Leave 0–2 for the stage and 3–5 for us; Landlock's rules still need the others."""
    null = os.open("/dev/null", os.O_RDONLY)
    wanted = (null, setup.stdout, setup.stderr, status, go, setup.cwd)
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _SAFE_FD) for fd in wanted]
    for number, fd in enumerate(moved):
        os.dup2(fd, number, inheritable=number <= 2)  # noqa: PLR2004 - stderr


def _limit(setup: Setup) -> None:
    size = resource.RLIM_INFINITY if setup.disk_mib is None else setup.disk_mib * _MIB
    for which, soft, hard in (
        (resource.RLIMIT_FSIZE, size, size),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NOFILE, *_OPEN_FILES),
        (resource.RLIMIT_MEMLOCK, _LOCKED_BYTES, _LOCKED_BYTES),
        (resource.RLIMIT_RTPRIO, 0, 0),
        (resource.RLIMIT_NICE, 0, 0),
        (resource.RLIMIT_MSGQUEUE, 0, 0),
    ):
        _set_limit(which, soft, hard)
    if setup.processes is not None:
        _set_limit(resource.RLIMIT_NPROC, setup.processes, setup.processes)
    os.sched_setaffinity(0, setup.cpus)
    _volunteer_for_oom()


def _volunteer_for_oom() -> None:
    """Let the kernel end this process before others when memory runs out.

    A process that is not dumpable may not write its own file unless it is root.
    """
    linux.close_to_tracers(closed=False)
    with open("/proc/self/oom_score_adj", "wb") as adjustment:
        adjustment.write(b"%d" % _OOM_SCORE)
    linux.close_to_tracers()


def _set_limit(which: int, soft: int, hard: int) -> None:
    """Set one limit, never above the hard limit that this process has already."""
    ceiling = resource.getrlimit(which)[1]
    if ceiling != resource.RLIM_INFINITY:
        hard = ceiling if hard == resource.RLIM_INFINITY else min(hard, ceiling)
        soft = hard if soft == resource.RLIM_INFINITY else min(soft, hard)
    resource.setrlimit(which, (soft, hard))


def take_identity(identity: Identity, keep: int = 0) -> None:
    """Become `identity` for good, keeping only the capabilities of the mask `keep`.

    Raises:
        OSError: an id could not be taken, or is not what it should be.
    """
    if keep:
        linux.keep_over_setuid(on=True)
    os.setgroups(identity.groups)
    os.setresgid(identity.gid, identity.gid, identity.gid)
    os.setresuid(identity.uid, identity.uid, identity.uid)
    linux.keep_capabilities(keep)
    if os.getresuid() != (identity.uid,) * 3 or os.getresgid() != (identity.gid,) * 3:
        raise OSError(errno.EPERM, f"ids are {os.getresuid()}, {os.getresgid()}")


def _take_identity(identity: Identity | None) -> None:
    if identity is None:
        linux.keep_capabilities(0)
    else:
        take_identity(identity)


def _candidates(program: str, path: str) -> list[str]:
    """Return what execvp would try, in its order; relative to the work folder as it is."""
    if "/" in program:
        return [program]
    tried = [f"{folder or '.'}/{program}" for folder in path.split(":")]
    return [one for one in tried if os.access(one, os.X_OK)][:1] or tried[-1:]


def _settle(milliseconds: int) -> None:
    """Spin for so long on the run's CPU, so that its clock is up (judging, 3.3)."""
    end = time.monotonic_ns() + milliseconds * 1_000_000
    while time.monotonic_ns() < end:
        pass


def _execute(found: list[str], setup: Setup) -> NoReturn:
    code = errno.ENOENT
    for path in found * _TRIES:
        try:
            os.execve(path, list(setup.argv), setup.env)
        except OSError as error:
            code = error.errno or errno.EINVAL
        if code != errno.ETXTBSY:
            break
        time.sleep(_PAUSE_S)
    os.write(_STATUS_FD, NOT_EXECUTED + str(code).encode())
    os._exit(127 if code in {errno.ENOENT, errno.ENOTDIR} else 126)
