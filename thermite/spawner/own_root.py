"""Level namespaces: a machine of its own for a plain user's stage, made without a privilege.

A user namespace gives the right to make all others, and maps the user to itself: inside it
can no more than outside. What a stage sees is put together from what it may see: folders of
the system, read-only, the stage root, and empty shared folders. The rig's folder, the user's
own files and its sockets are not there; process ids, queues and network are its own.
Source: isolation, 4.2; user_namespaces(7).
"""

import os
import socket
from typing import Final

from . import linux, namespaces, own_pids
from .landlock import SYSTEM
from .own_view import SHARED, View, make_passable, share

_TOP: Final = "/tmp"  # noqa: S108 - covered by the new root until it is everything
_ROOT: Final = "mode=0755,size=1m,nr_inodes=4096"
_HIDDEN: Final = "mode=0711,size=64k,nr_inodes=64"
_PLAIN: Final = namespaces.MS_NOSUID | namespaces.MS_NODEV


def enter(view: View, line: socket.socket, spawner: int, *, network: bool) -> None:
    """Return as process 2 of a machine of its own; the caller's process tells of it and leaves.

    Args:
        line: the spawner's, on which the numbers of init and stage are said.
        spawner: its pidfd, which is closed here.
        network: keep the machine's network.

    Raises:
        OSError: the kernel refused.
    """
    uid, gid = os.getuid(), os.getgid()
    flags = namespaces.NEW_USER | namespaces.NEW_PIDS | namespaces.NEW_MOUNTS | namespaces.NEW_IPC
    linux.close_to_tracers(closed=False)  # a process that is closed can't write its own maps
    namespaces.unshare(flags | (0 if network else namespaces.NEW_NETWORK))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        _write(f"{own_pids.PROC}/self/{name}", text)
    linux.close_to_tracers()
    _build(view)
    own_pids.enter(line, spawner)


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _build(view: View) -> None:
    """Make a root of what a stage may see, and leave the old one."""
    namespaces.mount(None, "/", None, namespaces.MS_REC | namespaces.MS_PRIVATE)
    stages = os.open(view.stage_root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    namespaces.mount("tmpfs", _TOP, "tmpfs", _PLAIN, _ROOT)
    for path in SYSTEM:  # /proc too: only where one is in sight may another be mounted
        _show(path)
    for path in SHARED:
        os.makedirs(f"{_TOP}{path}", exist_ok=True)
    for path in view.hidden:
        if os.path.isdir(f"{_TOP}{path}"):
            namespaces.mount("tmpfs", f"{_TOP}{path}", "tmpfs", _PLAIN, _HIDDEN)
    around = [path for path in SHARED if view.stage_root.startswith(f"{path}/")]
    if not around:
        make_passable(_TOP, view.stage_root)
    namespaces.close_to_writing(_TOP)
    share(_TOP)
    for path in around:
        _lead(path, view.stage_root)
    namespaces.mount(
        f"/proc/self/fd/{stages}", f"{_TOP}{view.stage_root}", None, namespaces.MS_BIND
    )
    os.close(stages)
    os.chdir(_TOP)
    namespaces.make_root_of_here()


def _lead(shared: str, stage_root: str) -> None:
    """Make the way to a stage root through a shared folder; nobody writes on the way."""
    first = f"{shared}/{stage_root.removeprefix(f'{shared}/').partition('/')[0]}"
    os.mkdir(f"{_TOP}{first}")
    if first != stage_root:
        namespaces.mount("tmpfs", f"{_TOP}{first}", "tmpfs", _PLAIN, _HIDDEN)
        make_passable(_TOP, stage_root)
        namespaces.close_to_writing(f"{_TOP}{first}")


def _show(path: str) -> None:
    """Let one of the system's paths be seen, with what is mounted below it."""
    shown = f"{_TOP}{path}"
    if os.path.islink(path):
        os.symlink(os.readlink(path), shown)
    elif os.path.isdir(path):
        os.makedirs(shown)
        namespaces.mount(path, shown, None, namespaces.MS_BIND | namespaces.MS_REC)
