"""Level namespaces: a machine of its own for a plain user's stage, made without a privilege.

A user namespace gives the right to make all others, and maps the user to itself: inside it
can no more than outside. What a stage sees is put together from what it may see: folders of
the system, read-only, the stage root, and empty shared folders. The rig's folder, the user's
own files and its sockets are not there; process ids, queues and network are its own.
Source: isolation, 4.2; user_namespaces(7).
"""

import os
from collections.abc import Sequence
from typing import Final

from . import linux, namespaces, own_pids
from .landlock import SYSTEM
from .own_view import SHARED, View, make_passable, opened, share

_TOP: Final = "/tmp"  # noqa: S108 - covered by the new root until it is everything
_ROOT: Final = "mode=0755,size=1m,nr_inodes=4096"
_HIDDEN: Final = "mode=0711,size=64k,nr_inodes=64"
_WAYS: Final = tuple(f"{path}/" for path in SHARED)
_BIND: Final = namespaces.MS_BIND | namespaces.MS_REC
_PLAIN: Final = namespaces.MS_NOSUID | namespaces.MS_NODEV


def enter(view: View, *, network: bool) -> None:
    """Enter a machine of its own; process ids are those of the next that are started (`own_pids`).

    Args:
        view: what is seen of the other; network: keep the network.

    Raises:
        OSError: the kernel refused.
    """
    flags = namespaces.NEW_PIDS | namespaces.NEW_MOUNTS | namespaces.NEW_IPC
    _own(flags | (0 if network else namespaces.NEW_NETWORK))
    _build(view)


def show_only(own: str, copies: Sequence[str]) -> None:
    """Cover the stage root but for one stage's folders: those of the others are the user's, too.

    Landlock alone does not keep them apart: all below a shared folder is the stage's to write, and
    the stage root may lie there.

    Args:
        own: the work folder, right below the stage root; copies: folders that are read, likewise.

    Raises:
        OSError: the kernel refused.
    """
    top, folders = os.path.dirname(own), opened((own, *copies))
    namespaces.mount("tmpfs", top, "tmpfs", _PLAIN, _HIDDEN)
    for path in folders:
        os.mkdir(path)
    namespaces.close_to_writing(top)
    for path, folder in folders.items():
        namespaces.mount(f"/proc/self/fd/{folder}", path, None, _BIND)
        os.close(folder)
    for path in copies:
        namespaces.close_to_writing(path)


def own_networks() -> None:
    """Get the right to make networks that outlive a stage, and to let others of ours join them.

    Raises:
        OSError: the kernel refused, and no stage's process can do more.
    """
    _own(0)


def _own(flags: int) -> None:
    """Enter a user namespace with the user mapped to itself, which owns all the others."""
    uid, gid = os.getuid(), os.getgid()
    linux.close_to_tracers(closed=False)  # a process that is closed can't write its own maps
    namespaces.unshare(flags | namespaces.NEW_USER)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        _write(f"{own_pids.PROC}/self/{name}", text)
    linux.close_to_tracers()


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
    shown = opened(path for path in view.shown if not os.path.isdir(f"{_TOP}{path}"))
    led = [path for path in (view.stage_root, *shown) if path.startswith(_WAYS)]
    plain = {path: folder for path, folder in shown.items() if path not in led}
    for path in SHARED:
        os.makedirs(f"{_TOP}{path}", exist_ok=True)
    for path in view.hidden:
        if os.path.isdir(f"{_TOP}{path}"):
            namespaces.mount("tmpfs", f"{_TOP}{path}", "tmpfs", _PLAIN, _HIDDEN)
    if view.stage_root not in led:
        make_passable(_TOP, view.stage_root)
    for path, folder in plain.items():
        make_passable(_TOP, path)
        _bind(folder, path)
    namespaces.close_to_writing(_TOP)
    share(_TOP)
    _lead(led)
    _bind(stages, view.stage_root)
    for path in shown.keys() - plain.keys():
        _bind(shown[path], path)
        namespaces.close_to_writing(f"{_TOP}{path}")
    os.chdir(_TOP)
    namespaces.make_root_of_here()


def _lead(paths: Sequence[str]) -> None:
    """Make the ways to folders through the shared ones; nobody writes on the way."""
    for first in sorted({_first_below(path) for path in paths}):
        os.mkdir(f"{_TOP}{first}")
        if first not in paths:
            namespaces.mount("tmpfs", f"{_TOP}{first}", "tmpfs", _PLAIN, _HIDDEN)
            for path in paths:
                if path.startswith(f"{first}/"):
                    make_passable(_TOP, path)
            namespaces.close_to_writing(f"{_TOP}{first}")


def _first_below(path: str) -> str:
    """Return the folder on the way to a path that lies right below a shared one."""
    (shared,) = (one for one in SHARED if path.startswith(f"{one}/"))
    return f"{shared}/{path.removeprefix(f'{shared}/').partition('/')[0]}"


def _bind(folder: int, path: str) -> None:
    """Let an open folder be seen at its path, and close it."""
    namespaces.mount(f"/proc/self/fd/{folder}", f"{_TOP}{path}", None, _BIND)
    os.close(folder)


def _show(path: str) -> None:
    """Let one of the system's paths be seen, with what is mounted below it."""
    shown = f"{_TOP}{path}"
    if os.path.islink(path):
        os.symlink(os.readlink(path), shown)
    elif os.path.isdir(path):
        os.makedirs(shown)
        namespaces.mount(path, shown, None, _BIND)
