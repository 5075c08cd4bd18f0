"""System calls that Python does not wrap, by ctypes; a failure is an OSError.

What the kernel only reads is handed over as bytes: each buffer of ctypes is of a type of its own
size, and where a type is made a fork copies a hundred pages.

Numbers are from the kernel's headers: include/uapi/linux/{prctl,capability,landlock}.h,
arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h. The three
landlock calls, pidfd and close_range have one number on every architecture.
"""

import ctypes
import os
import struct
import time
from typing import Final

MACHINE: Final = os.uname().machine
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
CAP_SYS_PTRACE: Final = 19
CAP_CHECKPOINT_RESTORE: Final = 40
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


def libc(name: str, *args: object, about: str | None = None) -> int:
    """Call a function of the C library that returns -1 when it fails.

    about: what it was called for, as in an OSError's filename.

    Raises:
        OSError: it failed.
    """
    result = int(getattr(_LIBC, name)(*args))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), about)
    return result


def call(number: int, *args: object) -> int:
    """Make one system call and return its result.

    Raises:
        OSError: the kernel refused it.
    """
    return libc("syscall", ctypes.c_long(number), *args)


def _prctl(option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    libc("prctl", ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero)


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
    header = struct.pack("=Ii", _CAP_VERSION_3, 0)
    call(_CAPSET[MACHINE], header, struct.pack("=6I", low, low, 0, high, high, 0))


def keep_over_setuid(*, on: bool) -> None:
    """Keep the permitted capabilities when the uid changes from 0."""
    _prctl(PR_SET_KEEPCAPS, int(on))


def install_filter(program: bytes) -> None:
    """Install a seccomp filter, eight bytes an instruction; needs no_new_privs."""
    at = ctypes.cast(ctypes.c_char_p(program), ctypes.c_void_p).value
    fprog = struct.pack("@HP", len(program) // 8, at)
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
