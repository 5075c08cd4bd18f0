"""System calls that Python does not wrap, by ctypes; a failure is an OSError.

Numbers are from the kernel's headers: include/uapi/linux/{prctl,capability,landlock}.h,
arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h. The three
landlock calls, pidfd and close_range have one number on every architecture.
"""

import ctypes
import os
import platform
import signal
import struct
import time
from typing import Final

MACHINE: Final = platform.machine()
_LIBC: Final = ctypes.CDLL(None, use_errno=True)

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_SET_KEEPCAPS: Final = 8
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38

CAP_DAC_OVERRIDE: Final = 1
CAP_DAC_READ_SEARCH: Final = 2
CAP_SETGID: Final = 6
CAP_SETUID: Final = 7
CAP_KILL: Final = 5
CAP_CHOWN: Final = 0
_CAP_VERSION_3: Final = 0x20080522

_CLOSE_RANGE: Final = 436
_SECCOMP: Final = {"x86_64": 317, "aarch64": 277}
_CAPGET: Final = {"x86_64": 125, "aarch64": 90}
_CAPSET: Final = {"x86_64": 126, "aarch64": 91}
LANDLOCK_CREATE_RULESET: Final = 444
LANDLOCK_ADD_RULE: Final = 445
LANDLOCK_RESTRICT_SELF: Final = 446
_SECCOMP_SET_MODE_FILTER: Final = 1
_SECCOMP_FILTER_FLAG_SPEC_ALLOW: Final = 4

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
    if _LIBC.unshare(ctypes.c_int(flags)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "unshare")


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Put a filesystem or a folder at another place (mount(2)).

    Raises:
        OSError: the kernel refused it.
    """
    words = [None if one is None else os.fsencode(one) for one in (source, target, kind)]
    if _LIBC.mount(*words, ctypes.c_ulong(flags), options.encode() or None) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), target)


def close_to_writing(top: str) -> None:
    """Make a mount and all below it read-only, and no setuid bit there count.

    Raises:
        OSError: the kernel refused it.
    """
    change = ctypes.create_string_buffer(struct.pack("=4Q", _ATTR_RDONLY_NOSUID, 0, 0, 0), 32)
    call(
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
    call(_PIVOT_ROOT[MACHINE], b".", b".")
    call(_UMOUNT[MACHINE], b".", ctypes.c_int(_MNT_DETACH))  # the old root, on top of the new
    os.chdir("/")


def fork_beside() -> int:
    """Fork a child of this process's parent; return its pid, 0 in the child.

    For a single-threaded process: Python's own bookkeeping of forks is passed by.

    Raises:
        OSError: the kernel refused it.
    """
    zero = ctypes.c_ulong(0)
    flags = ctypes.c_ulong(_CLONE_PARENT | signal.SIGCHLD)
    return call(_CLONE[MACHINE], flags, zero, zero, zero, zero)


def call(number: int, *args: object) -> int:
    """Make one system call and return its result.

    Raises:
        OSError: the kernel refused it.
    """
    result = int(_LIBC.syscall(ctypes.c_long(number), *args))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    if _LIBC.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def become_subreaper() -> None:
    """Let orphans below this process fall to it instead of to init."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def close_to_tracers(*, closed: bool = True) -> None:
    """Make this process not dumpable: no other process of its user can trace or read it."""
    _prctl(PR_SET_DUMPABLE, int(not closed))


def forbid_new_privileges() -> None:
    """Set no_new_privs: no later exec gains a uid, gid or capability."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1)


def die_with_parent(number: int, parent: int) -> None:
    """Ask for a signal at the parent's death; leave at once if it is dead already.

    A change of uid clears the request, so this comes after it.
    """
    _prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(125)


def current_cpu() -> int:
    """Return the CPU that this process runs on now."""
    return int(_LIBC.sched_getcpu())


def close_from(first: int) -> None:
    """Close every descriptor from `first` on."""
    call(_CLOSE_RANGE, ctypes.c_uint(first), ctypes.c_uint(0xFFFFFFFF), ctypes.c_uint(0))


def capabilities() -> tuple[int, int]:
    """Return the effective and permitted capability sets as bit masks (capget)."""
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAP_VERSION_3, 0))
    sets = ctypes.create_string_buffer(24)
    call(_CAPGET[MACHINE], header, sets)
    e_low, p_low, _, e_high, p_high, _ = struct.unpack("=6I", sets.raw)
    return e_low | e_high << 32, p_low | p_high << 32


class CapabilityLook:
    """One capget whose buffers stand ready: the killer has no time to make them."""

    def __init__(self) -> None:
        self._header = ctypes.create_string_buffer(struct.pack("=Ii", _CAP_VERSION_3, 0))
        self._sets = ctypes.create_string_buffer(24)

    def is_empty(self) -> bool:
        """Whether this process has no effective and no permitted capability."""
        call(_CAPGET[MACHINE], self._header, self._sets)
        e_low, p_low, _, e_high, p_high, _ = struct.unpack("=6I", self._sets.raw)
        return not (e_low | p_low | e_high | p_high)


def keep_capabilities(mask: int) -> None:
    """Give up every capability but those of `mask`; with no_new_privs for good."""
    low, high = mask & 0xFFFFFFFF, mask >> 32
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAP_VERSION_3, 0))
    sets = ctypes.create_string_buffer(struct.pack("=6I", low, low, 0, high, high, 0))
    call(_CAPSET[MACHINE], header, sets)


def keep_over_setuid(*, on: bool) -> None:
    """Keep the permitted capabilities when the uid changes from 0."""
    _prctl(PR_SET_KEEPCAPS, int(on))


def install_filter(program: bytes) -> None:
    """Install a seccomp filter, eight bytes an instruction; needs no_new_privs."""
    code = ctypes.create_string_buffer(program, len(program))
    fprog = ctypes.create_string_buffer(
        struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    )
    for flags in (_SECCOMP_FILTER_FLAG_SPEC_ALLOW, 0):
        try:
            call(
                _SECCOMP[MACHINE],
                ctypes.c_uint(_SECCOMP_SET_MODE_FILTER),
                ctypes.c_uint(flags),
                fprog,
            )
        except OSError:
            if flags == 0:
                raise
        else:
            return


def raw_ns() -> int:
    """Return the judge's clock: CLOCK_MONOTONIC_RAW, ns."""
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)


def suspended_ns() -> int:
    """Return how long this machine has been suspended since its start, ns."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
