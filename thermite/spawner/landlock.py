"""Landlock: which files a process may still reach, and whom it may still signal.

An allow-list: what no rule names can't be opened, whatever its mode says. Descriptors that
are open already stay usable, and chmod, stat and utime are not covered. Source: the
kernel's Documentation/userspace-api/landlock.rst; bits: include/uapi/linux/landlock.h.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable, Sequence
from typing import Final

from .linux import (
    LANDLOCK_ADD_RULE,
    LANDLOCK_CREATE_RULESET,
    LANDLOCK_RESTRICT_SELF,
    call,
)

_EXECUTE: Final = 1 << 0
_WRITE_FILE: Final = 1 << 1
_READ_FILE: Final = 1 << 2
_READ_DIR: Final = 1 << 3
_REFER: Final = 1 << 13  # ABI 2
_TRUNCATE: Final = 1 << 14  # ABI 3
_FIRST_RIGHTS: Final = (1 << 13) - 1

NET_ABI: Final = 4
SCOPE_ABI: Final = 6
_NET: Final = 0b11  # bind and connect of TCP
_CONNECT_TCP: Final = 0b10
_RULE_NET_PORT: Final = 2
_SCOPE: Final = 0b11  # abstract unix sockets, signals
_RULE_PATH_BENEATH: Final = 1
_VERSION_FLAG: Final = 1

READ: Final = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_RIGHTS: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_MOST_SPLITS: Final = 4096

SYSTEM: Final = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/opt", "/nix"),
    *("/etc", "/proc", "/sys", "/dev", "/run/systemd/resolve"),
)
"""Folders of the system that a build or a run reads; homes, /var, /tmp and /srv are not."""
DEVICES: Final = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))


def abi() -> int:
    """Return the kernel's Landlock version, 0 when there is none."""
    try:
        return call(LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(_VERSION_FLAG))
    except OSError:
        return 0


def _all_rights(version: int) -> int:
    rights = _FIRST_RIGHTS
    if version >= 2:  # noqa: PLR2004 - the ABI that brought the right
        rights |= _REFER
    if version >= 3:  # noqa: PLR2004 - the ABI that brought the right
        rights |= _TRUNCATE
    return rights


def _is_within(path: str, top: str) -> bool:
    """Return whether a path is `top` or lies below it; both absolute and without links."""
    return f"{path.rstrip('/')}/".startswith(f"{top.rstrip('/')}/")


def spared(root: str, private: Sequence[str]) -> list[str]:
    """Return paths that together cover `root` but no path of `private`.

    A rule covers everything below it, so a folder on the way to a private one is replaced
    by its other children.
    """
    if any(_is_within(root, path) for path in private):
        return []
    inner = [path for path in private if _is_within(path, root)]
    if not inner:
        return [root]
    kept: list[str] = []
    for name in sorted(os.listdir(root))[:_MOST_SPLITS]:
        child = f"{root.rstrip('/')}/{name}"
        if not os.path.islink(child):
            kept.extend(spared(child, inner))
    return kept


class Ruleset:
    """What one process will be allowed: made and filled by anybody, enforced by itself."""

    def __init__(self, version: int, *, files: bool, network: bool) -> None:
        """Make an empty ruleset.

        files: reach no file but those that rules name; network: leave TCP alone.

        Raises:
            OSError: the kernel refused.
        """
        self._all = _all_rights(version)
        fs = self._all if files else 0
        net = _NET if version >= NET_ABI and not network else 0
        self._is_net_handled = bool(net)
        scoped = _SCOPE if version >= SCOPE_ABI else 0
        self.fd = -1
        if fs | net | scoped:
            block = struct.pack("=QQQ", fs, net, scoped)
            size = 24 if version >= SCOPE_ABI else 16 if version >= NET_ABI else 8
            self.fd = call(LANDLOCK_CREATE_RULESET, block, ctypes.c_size_t(size), ctypes.c_uint(0))
            os.set_inheritable(self.fd, False)  # noqa: FBT003 - positional only

    def allow_in(self, folder: int, rights: int | None = None) -> None:
        """Allow `rights`, by default all, in an open folder or for an open file."""
        if self.fd < 0:
            return
        wanted = self._all if rights is None else rights
        if not stat.S_ISDIR(os.fstat(folder).st_mode):
            wanted &= _FILE_RIGHTS & self._all
        rule = struct.pack("=Qi", wanted, folder)
        call(
            LANDLOCK_ADD_RULE,
            ctypes.c_int(self.fd),
            ctypes.c_int(_RULE_PATH_BENEATH),
            rule,
            ctypes.c_uint(0),
        )

    def allow_below(self, paths: Iterable[str], rights: int | None = None) -> None:
        """Allow `rights`, by default all, below each path that exists."""
        for path in paths:
            try:
                fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                self.allow_in(fd, rights)
            finally:
                os.close(fd)

    def allow_port(self, port: int) -> None:
        """Allow to connect to a TCP port, on whatever host; nothing where TCP is left alone."""
        if self.fd < 0 or not self._is_net_handled:
            return
        rule = struct.pack("=QQ", _CONNECT_TCP, port)
        call(
            LANDLOCK_ADD_RULE,
            ctypes.c_int(self.fd),
            ctypes.c_int(_RULE_NET_PORT),
            rule,
            ctypes.c_uint(0),
        )

    def close(self) -> None:
        """Give the ruleset up; whoever enforces it has a copy of the descriptor."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def enforce(self) -> None:
        """Confine the calling process for good; needs no_new_privs.

        Raises:
            OSError: the kernel refused.
        """
        if self.fd >= 0:
            call(LANDLOCK_RESTRICT_SELF, ctypes.c_int(self.fd), ctypes.c_uint(0))
            self.close()
