"""The stage's own process, from the fork to its exec, in the order of isolation 4.1.

It is made ahead, by the nursery, has what every stage has, and waits for its order: what this
stage has. Then it gives up what it has in a fixed order, reports that it is ready, waits for the go
byte and executes; a set-up that fails is told, and is never the candidate's fault.
"""

import contextlib
import errno
import marshal
import os
import resource
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, NoReturn

from . import linux, loopback, networks, own_pids, own_root, own_view
from .ahead import LINE_FD
from .landlock import DEVICES, READ, Ruleset
from .own_view import View
from .seccomp import Network

HANDED_FD: Final = 4
"""Where a stage finds what its starter handed to it (isolation, 4.1, child order)."""

READY: Final = b"R"
FAILED: Final = b"F"
NOT_EXECUTED: Final = b"X"
GO: Final = b"g"
OUR_EXEC_ERRORS: Final = frozenset(
    {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY}
)
"""An exec that fails with one of these is the rig's trouble; any other is the candidate's."""

MOST_ORDER_BYTES: Final = 1 << 17
_MOST_FDS: Final = 64
_TRIES: Final = 100
_PAUSE_S: Final = 0.002
"""ETXTBSY lasts while a fork of the copy's writer, on its way to its own exec, still holds it."""

_OUTSIDE: Final = 0
"""The number of a parent that is in no pid namespace of this process (pid_namespaces(7))."""

_MIB: Final = 1 << 20
_BOUNDLESS: Final = 1 << 62
"""A limit from here on is none: the kernel's numbers end at 2**63 (setrlimit(2))."""
_MICROSECONDS: Final = 1_000_000
REALTIME_RUN: Final = 1
"""SCHED_FIFO of a timed run where rig.toml asks for it (isolation, 4.1, Real-time priority)."""
_OPEN_FILES: Final = (1024, 65536)
_OURS_ALONE: Final = 8
"""The part of the limit of descriptors that no stage gets. Those on their way through sockets are
counted by user, and who is over his own limit sends none: a stage that had as many as the spawner
may have would keep its own user's spawner from every other stage."""
_LOCKED_BYTES: Final = 64 * _MIB
_OOM_SCORE: Final = 800
_ALWAYS: Final = (
    (resource.RLIMIT_CORE, 0, 0),
    (resource.RLIMIT_MEMLOCK, _LOCKED_BYTES, _LOCKED_BYTES),
    (resource.RLIMIT_RTPRIO, 0, 0),
    (resource.RLIMIT_NICE, 0, 0),
    (resource.RLIMIT_MSGQUEUE, 0, 0),
)


@dataclass(frozen=True)
class Identity:
    """Who a process becomes: all its uids, all its gids, and further groups."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


@dataclass(frozen=True)
class Order:
    """One stage; beside it go stdout, stderr, the folder to run in, and what it may reach.

    writable: the first so many of the latter may be written in, the others read;
    realtime_s: SCHED_FIFO with at most so much CPU time at a stretch, s, or None;
    in a view of the stage's own, `folder` names the folder to run in, and view_mib bounds
    what its shared folders hold; shown: in a plain user's, its work folder and copies;
    is_handed: the last descriptor is the stage's to keep; gateway_port: of TCP, the one port
    that it may connect to.
    """

    argv: Sequence[str]
    env: Mapping[str, str]
    identity: Identity | None
    processes: int | None
    disk_mib: int | None
    cpus: Sequence[int]
    settle_ms: int
    writable: int = 0
    realtime_s: float | None = None
    folder: str = ""
    view_mib: int | None = None
    shown: Sequence[str] = ()
    is_handed: bool = False
    gateway_port: int | None = None

    def to_bytes(self) -> bytes:
        """Return the message for a process that waits; marshal reads it in a tenth of JSON's time.

        It comes from the spawner alone, by a socket that nobody else has.
        """
        told = {name: getattr(self, name) for name in _FIELDS}
        who = self.identity
        told["identity"] = who and (who.uid, who.gid, tuple(who.groups))
        told |= {"argv": [*self.argv], "env": dict(self.env), "cpus": [*self.cpus]}
        return marshal.dumps(told)


_FIELDS: Final = tuple(field.name for field in fields(Order))


def _read_order(raw: bytes) -> Order:
    told: dict[str, Any] = marshal.loads(raw)  # noqa: S302 - from the spawner
    if told["identity"] is not None:
        told["identity"] = Identity(*told["identity"])
    return Order(**told)


_DRY: Final = Order(["x"], {"PATH": "/x"}, Identity(0, 0), 1, 1, [0], 0).to_bytes()
"""An order that is read and forgotten, so that reading the real one copies no page."""


@dataclass(frozen=True)
class Outfit:
    """What every stage of this spawner has: filters by network, what it may reach, its CPUs."""

    programs: Mapping[Network, bytes | None]
    landlock: int
    confine_files: bool
    system_paths: Sequence[str]
    cpus: frozenset[int]

    def ruleset(self, *, network: Network, further: Sequence[str] = ()) -> Ruleset:
        """Return what every stage may reach; a stage's own folders are still to be added.

        Args:
            network: what it may make sockets for; further: folders that it may read.
        """
        rules = Ruleset(self.landlock, files=self.confine_files, network=network == "open")
        if self.confine_files:
            rules.allow_below((*self.system_paths, *further), READ)
            rules.allow_below(DEVICES)
        return rules


def prepare_for_all(*, is_rootless: bool) -> None:
    """Set in the nursery what its children inherit: what every stage has alike.

    is_rootless: they are a plain user's, and will have views of their own.
    """
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # the interpreter ignores them
        signal.signal(number, signal.SIG_DFL)
    for which, soft, hard in (*_ALWAYS, (resource.RLIMIT_NOFILE, *_open_files())):
        _set_limit(which, soft, hard)
    _volunteer_for_oom()
    os.umask(0o077)
    linux.forbid_new_privileges()
    if is_rootless:
        with contextlib.suppress(OSError):  # each of them says what is wrong when it tries
            own_root.own_networks()


def wait_for_order(
    outfit: Outfit,
    line: socket.socket,
    parent: int,
    kept: int | None,
    *,
    network: Network,
    further: Sequence[str],
    view: View | None,
) -> None:
    """Prepare what can be prepared, then become the stage that an order describes.

    kept: a network that nobody is in any more; further: paths that it may read beside the system's;
    view: of the stage's own, None for the machine's.
    """
    os.setsid()
    program = outfit.programs[network]
    try:
        rules = outfit.ruleset(network=network, further=further)
        if view is not None:
            can_share = network == "none" and program is not None
            joined = networks.joined(kept) if can_share else None
            has_one = network == "open" or joined is not None
            # The init's, too: where the next stage is made, it would wait for that to end.
            os.sched_setaffinity(0, outfit.cpus)
            parent = _enter(view, line, parent, joined, has_network=has_one)
            if view.is_rootless:  # Landlock goes by files, and these are new
                rules.allow_below(("/proc",), READ)
                rules.allow_below(own_view.SHARED)
        elif program is not None:
            linux.install_filter(program)  # nothing that is still to be done is refused by it
            program = None
    except OSError as error:
        line.send(_failed(error))
        return
    _read_order(_DRY)
    raw, fds, _, _ = socket.recv_fds(line, MOST_ORDER_BYTES, _MOST_FDS)
    if raw:
        _become(_read_order(raw), fds, rules, line, parent, program)


def _enter(
    view: View, line: socket.socket, parent: int, joined: int | None, *, has_network: bool
) -> int:
    """Enter a view of the stage's own; return what this process's parent is called there.

    joined: the network that it has joined for it; has_network: the one that it has is the stage's.
    """
    spawner = os.pidfd_open(parent)
    way = own_root if view.is_rootless else own_view
    way.enter(view, network=has_network)
    own_pids.enter(line, spawner, joined)
    return _OUTSIDE


def _change_folder(order: Order, cwd: int) -> None:
    """Go to the folder to run in, which has another path in a view of the stage's own.

    Raises:
        OSError: what lies at that path there is not the folder.
    """
    if not order.folder:
        os.fchdir(cwd)
        return
    os.chdir(order.folder)
    here, wanted = os.stat("."), os.fstat(cwd)
    if (here.st_dev, here.st_ino) != (wanted.st_dev, wanted.st_ino):
        raise OSError(errno.ESTALE, "it is another folder in the stage's own view", order.folder)


def _become(  # noqa: PLR0917 - all that a stage is made of
    order: Order,
    fds: Sequence[int],
    rules: Ruleset,
    line: socket.socket,
    parent: int,
    program: bytes | None,
) -> NoReturn:
    stdout, stderr, cwd, *reach = fds
    handed = reach.pop() if order.is_handed else -1
    try:
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        for number, fd in enumerate(reach):
            rules.allow_in(fd, None if number < order.writable else READ)
        _limit(order)
        if order.folder:
            own_view.bound(order.view_mib)
        if order.shown:
            own_root.show_only(order.shown[0], order.shown[1:])
        _open_door(order, rules, handed)
        if program is not None:
            linux.install_filter(program)  # it forbids what makes a view
        if order.identity is None:
            linux.keep_capabilities(0)
        else:
            take_identity(order.identity)
        linux.die_with_parent(signal.SIGKILL, parent)
        rules.enforce()
        _change_folder(order, cwd)
        linux.close_from(_keep_handed(order, handed) + 1)
        if order.realtime_s is None:  # until here the spawner's own, so that nobody holds it up
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        found = _candidates(order.argv[0], order.env.get("PATH", ""))
        _settle(order.settle_ms)
    except Exception as error:  # noqa: BLE001 - told to the parent, which raises it
        line.send(_failed(error))
        os._exit(126)
    line.send(READY)
    if line.recv(1) != GO:
        os._exit(126)
    _execute(found, order, line)


def _open_door(order: Order, rules: Ruleset, handed: int) -> None:
    """Let a stage to its campaign's gateway, which in a view of its own listens in there."""
    if order.gateway_port is None:
        return
    rules.allow_port(order.gateway_port)
    if order.folder:
        loopback.offer(order.gateway_port, handed)


def _keep_handed(order: Order, handed: int) -> int:
    """Put what a stage was handed in its place; return the last descriptor that stays open."""
    if not order.is_handed or order.gateway_port is not None:
        return LINE_FD
    os.dup2(handed, HANDED_FD)
    os.set_inheritable(HANDED_FD, True)  # noqa: FBT003 - positional only
    return HANDED_FD


def _failed(error: Exception) -> bytes:
    return FAILED + f"{type(error).__name__}: {error}".encode()[:500]


def _limit(order: Order) -> None:
    size = resource.RLIM_INFINITY if order.disk_mib is None else order.disk_mib * _MIB
    _set_limit(resource.RLIMIT_FSIZE, size, size)
    if order.processes is not None:
        _set_limit(resource.RLIMIT_NPROC, order.processes, order.processes)
    os.sched_setaffinity(0, order.cpus)
    if order.realtime_s is not None:
        longest_us = int(order.realtime_s * _MICROSECONDS)
        _set_limit(resource.RLIMIT_RTTIME, longest_us, longest_us)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(REALTIME_RUN))


def _volunteer_for_oom() -> None:
    """Let the kernel end this process and its children before others when memory runs out.

    A process that is not dumpable may not write its own file unless it is root.
    """
    linux.close_to_tracers(closed=False)
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    os.write(fd, b"%d" % _OOM_SCORE)
    os.close(fd)
    linux.close_to_tracers()


def _open_files() -> tuple[int, int]:
    """Return a stage's limits of descriptors: fewer than its spawner has."""
    soft, most = _OPEN_FILES
    ours = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft, most if ours == resource.RLIM_INFINITY else min(most, ours - ours // _OURS_ALONE)


def _set_limit(which: int, soft: int, hard: int) -> None:
    """Set one limit, never above the hard limit that this process has already."""
    soft, hard = (resource.RLIM_INFINITY if one >= _BOUNDLESS else one for one in (soft, hard))
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


def _execute(found: list[str], order: Order, line: socket.socket) -> NoReturn:
    code = errno.ENOENT
    for path in found * _TRIES:
        try:
            os.execve(path, list(order.argv), order.env)
        except OSError as error:
            code = error.errno or errno.EINVAL
        if code != errno.ETXTBSY:
            break
        time.sleep(_PAUSE_S)
    line.send(NOT_EXECUTED + str(code).encode())
    os._exit(127 if code in {errno.ENOENT, errno.ENOTDIR} else 126)
