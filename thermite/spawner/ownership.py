"""Who owns what in the rig's folder. Source: the system page, A rig's folder.

The rig's folder is root's, with the harness's group and the sticky bit, so that the harness
can make its own files there and can move or remove nobody else's. Should the harness have
another uid than last time, its files are re-owned by descriptor before it starts.
"""

import contextlib
import grp
import os
import stat
from dataclasses import dataclass
from typing import Final

from .child import Identity
from .tree import FOLDER, open_folder

_STATE_MODE: Final = 0o1771
_PRIVATE: Final = ("keys", "repos", "exports", "models", "store", "blobs")
_PRIVATE_FILES: Final = (
    "ledger.db",
    "ledger.db-wal",
    "ledger.db-shm",
    "ledger.lock",
    "views.db",
    "views.db-wal",
    "views.db-shm",
)
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
DROP_GROUP: Final = "thermite-drop"


@dataclass(frozen=True)
class _Folder:
    path: str
    mode: int
    owner: int
    group: int


def settle_state(state: str, harness: Identity | None, supervisor: Identity | None) -> None:
    """Make the folders of a rig and give each its owner and mode.

    Raises:
        OSError: something there is a link, or not what it should be.
    """
    me = (os.getuid(), os.getgid())
    own = me if harness is None else (harness.uid, harness.gid)
    group = me[1] if supervisor is None else supervisor.gid
    root = os.open(state, FOLDER)
    try:
        _give(root, me[0], own[1], _STATE_MODE)
        for name in _PRIVATE:
            _make(root, _Folder(name, 0o700, *own))
            _own_below(root, name, *own)
        for name in _PRIVATE_FILES:
            _own_file(root, name, *own, 0o600)
        _own_file(root, "trust.json", own[0], group, 0o640)
        # What the rig's owner put there for fetching: the supervisor's alone (3.9, Access).
        fetcher = me if supervisor is None else (supervisor.uid, supervisor.gid)
        _make(root, _Folder("access", 0o700, *fetcher))
        _own_below(root, "access", *fetcher)
        droppers = drop_group()
        _make(root, _Folder("inbox", 0o710, own[0], group if droppers is None else droppers))
        for name, mode in (("tmp", 0o1773), ("new", 0o1773)):
            _make(root, _Folder(f"inbox/{name}", mode, own[0], group))
        for name in ("work", "done", "refused"):
            _make(root, _Folder(f"inbox/{name}", 0o750, own[0], group))
            _own_below(root, f"inbox/{name}", own[0], group)
        _make(root, _Folder("outbox", 0o755, *own))
        _own_below(root, "outbox", *own)
        for name, mode in (("stages", 0o711), ("lanes", 0o711), ("sockets", 0o700)):
            _make(root, _Folder(name, mode, *me))
    finally:
        os.close(root)


def drop_group() -> int | None:
    """Return the group of those who may drop orders, where `rig init` has made it."""
    try:
        return grp.getgrnam(DROP_GROUP).gr_gid
    except KeyError:
        return None


def _give(fd: int, owner: int, group: int, mode: int) -> None:
    """Set owner, group and mode of an open file where they differ."""
    found = os.fstat(fd)
    if (found.st_uid, found.st_gid) != (owner, group):
        os.fchown(fd, owner, group)
    if stat.S_IMODE(found.st_mode) != mode:
        os.fchmod(fd, mode)


def _open_path(root: int, path: str) -> int:
    here = os.dup(root)
    for part in path.split("/"):
        try:
            deeper = open_folder(part, at=here)
        finally:
            os.close(here)
        here = deeper
    return here


def _make(root: int, wanted: _Folder) -> None:
    parent, _, name = wanted.path.rpartition("/")
    here = _open_path(root, parent) if parent else os.dup(root)
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=here)
        fd = open_folder(name, at=here)
        try:
            _give(fd, wanted.owner, wanted.group, wanted.mode)
        finally:
            os.close(fd)
    finally:
        os.close(here)


def _own_file(root: int, name: str, owner: int, group: int, mode: int) -> None:
    try:
        fd = os.open(name, _OPEN, dir_fd=root)
    except FileNotFoundError:
        return
    try:
        if stat.S_ISREG(os.fstat(fd).st_mode):
            _give(fd, owner, group, mode)
    finally:
        os.close(fd)


def _own_below(root: int, path: str, owner: int, group: int) -> None:
    """Re-own everything below a folder that has another owner than it should; links stay."""
    stack = [_open_path(root, path)]
    while stack:
        here = stack.pop()
        try:
            for name in os.listdir(here):
                try:
                    fd = os.open(name, _OPEN, dir_fd=here)
                except OSError:
                    continue  # a link or a socket: not one of the harness's files
                found = os.fstat(fd)
                if (found.st_uid, found.st_gid) != (owner, group):
                    os.fchown(fd, owner, group)
                if stat.S_ISDIR(found.st_mode):
                    stack.append(fd)
                else:
                    os.close(fd)
        finally:
            os.close(here)
