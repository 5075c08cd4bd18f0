"""System calls that give a process namespaces and mounts of its own; a failure is an OSError.

Numbers are from the kernel's headers: include/uapi/linux/{sched,mount,fcntl}.h,
arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
"""

import ctypes
import os
import signal
import struct
from typing import Final

from . import linux

NEW_MOUNTS: Final = 0x00020000
NEW_IPC: Final = 0x08000000
NEW_USER: Final = 0x10000000
NEW_PIDS: Final = 0x20000000
NEW_NETWORK: Final = 0x40000000
_CLONE_PARENT: Final = 0x00008000
_CLONE: Final = {"x86_64": 56, "aarch64": 220}
_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}
_UMOUNT: Final = {"x86_64": 166, "aarch64": 39}
_MNT_DETACH: Final = 2
_MOUNT_SETATTR: Final = 442
_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_ATTR_RDONLY_NOSUID: Final = 0b11
MS_NOSUID: Final = 2
MS_NODEV: Final = 4
MS_NOEXEC: Final = 8
MS_REMOUNT: Final = 32
MS_BIND: Final = 4096
MS_REC: Final = 16384
MS_PRIVATE: Final = 1 << 18


def unshare(flags: int) -> None:
    """Leave some of this process's namespaces for new ones.

    Raises:
        OSError: the kernel refused it.
    """
    linux.libc("unshare", ctypes.c_int(flags), about="unshare")


def join(fd: int, kind: int) -> None:
    """Enter a namespace of one kind by its descriptor.

    Raises:
        OSError: the kernel refused it.
    """
    linux.libc("setns", ctypes.c_int(fd), ctypes.c_int(kind), about="setns")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Put a filesystem or a folder at another place (mount(2)).

    Raises:
        OSError: the kernel refused it.
    """
    words = [None if one is None else os.fsencode(one) for one in (source, target, kind)]
    linux.libc("mount", *words, ctypes.c_ulong(flags), options.encode() or None, about=target)


def close_to_writing(top: str) -> None:
    """Make a mount and all below it read-only, and no setuid bit there count.

    Raises:
        OSError: the kernel refused it.
    """
    change = struct.pack("=4Q", _ATTR_RDONLY_NOSUID, 0, 0, 0)
    linux.call(
        _MOUNT_SETATTR,
        ctypes.c_int(_AT_FDCWD),
        os.fsencode(top),
        ctypes.c_uint(_AT_RECURSIVE),
        change,
        ctypes.c_size_t(32),
    )


def make_root_of_here() -> None:
    """Make the working folder, a mount of its own, the root, and leave the old one.

    Raises:
        OSError: the kernel refused it.
    """
    linux.call(_PIVOT_ROOT[linux.MACHINE], b".", b".")
    linux.call(
        _UMOUNT[linux.MACHINE], b".", ctypes.c_int(_MNT_DETACH)
    )  # the old root, on top of the new
    os.chdir("/")


def fork_beside() -> int:
    """Fork a child of this process's parent; return its pid, 0 in the child.

    For a single-threaded process: Python's own bookkeeping of forks is passed by.

    Raises:
        OSError: the kernel refused it.
    """
    zero = ctypes.c_ulong(0)
    flags = ctypes.c_ulong(_CLONE_PARENT | signal.SIGCHLD)
    return linux.call(_CLONE[linux.MACHINE], flags, zero, zero, zero, zero)
