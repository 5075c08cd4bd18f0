"""The system call filter of a stage, as classic BPF built with struct.

Source of the rules: the design page on isolation, 4.1 (stage child order) and finding 15.
Source of the numbers: arch/x86/entry/syscalls/syscall_64.tbl and
include/uapi/asm-generic/unistd.h; of the offsets: struct seccomp_data.
"""

import errno
import struct
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST: Final = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06
_AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K

_ALLOW: Final = 0x7FFF0000
_KILL_PROCESS: Final = 0x80000000
_ERRNO: Final = 0x00050000

_NR: Final = 0
_ARCH: Final = 4
_X32_BIT: Final = 0x40000000

_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

NUMBERS: Final[dict[str, dict[str, int]]] = {
    "x86_64": {
        "open": 2,
        "shmget": 29,
        "socket": 41,
        "clone": 56,
        "semget": 64,
        "msgget": 68,
        "creat": 85,
        "ptrace": 101,
        "chmod": 90,
        "fchmod": 91,
        "mknod": 133,
        "setpriority": 141,
        "sched_setparam": 142,
        "sched_setscheduler": 144,
        "pivot_root": 155,
        "setxattr": 188,
        "lsetxattr": 189,
        "fsetxattr": 190,
        "mount": 165,
        "umount2": 166,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "ioprio_set": 251,
        "openat": 257,
        "mknodat": 259,
        "fchmodat": 268,
        "unshare": 272,
        "fallocate": 285,
        "perf_event_open": 298,
        "prlimit64": 302,
        "open_by_handle_at": 304,
        "setns": 308,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "sched_setattr": 314,
        "bpf": 321,
        "userfaultfd": 323,
    },
    "aarch64": {
        "setxattr": 5,
        "lsetxattr": 6,
        "fsetxattr": 7,
        "ioprio_set": 30,
        "mknodat": 33,
        "umount2": 39,
        "mount": 40,
        "pivot_root": 41,
        "fallocate": 47,
        "fchmod": 52,
        "fchmodat": 53,
        "openat": 56,
        "unshare": 97,
        "ptrace": 117,
        "sched_setparam": 118,
        "sched_setscheduler": 119,
        "setpriority": 140,
        "msgget": 186,
        "semget": 190,
        "shmget": 194,
        "socket": 198,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "clone": 220,
        "perf_event_open": 241,
        "prlimit64": 261,
        "open_by_handle_at": 265,
        "setns": 268,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "sched_setattr": 274,
        "bpf": 280,
        "userfaultfd": 282,
    },
}
_NEW_NUMBERS: Final = {
    "io_uring_setup": 425,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "close_range": 436,
    "openat2": 437,
    "pidfd_getfd": 438,
    "process_madvise": 440,
    "mount_setattr": 442,
    "memfd_secret": 447,
    "fchmodat2": 452,
    "setxattrat": 463,
}
"""Calls younger than the common numbering have one number on every architecture."""

_ABSENT: Final = ("add_key", "request_key", "keyctl", "clone3", "openat2", "memfd_secret")
"""clone3 and openat2 take their flags and modes where a filter can't see them, and libc does
without; what a secret memory holds beyond its mappings, nobody is told."""
_UNSUPPORTED: Final = ("setxattr", "lsetxattr", "fsetxattr", "setxattrat")
"""On a filesystem in memory they hold what no limit counts; many filesystems have none."""
_SYSV: Final = ("shmget", "semget", "msgget")
_FORBIDDEN: Final = (
    *("mount", "umount2", "pivot_root", "unshare", "setns"),
    *("open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr"),
    *("io_uring_setup", "userfaultfd", "bpf", "perf_event_open"),
)
_NAMESPACE_FLAGS: Final = 0x7E020000
"""CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}; NEWTIME can't be had from clone."""
_CLONE_FILES: Final = 0x400
_CLONE_THREAD: Final = 0x10000
_CLOSE_RANGE_UNSHARE: Final = 0x2
_KEEP_SIZE: Final = 0x01
_PUNCH_HOLE: Final = 0x02
"""FALLOC_FL_*: the first alone takes room beyond a file's end, without RLIMIT_FSIZE's bound."""
_SETID_BITS: Final = 0o6000
_MODE_ARGUMENT: Final = {
    "chmod": 1,
    "fchmod": 1,
    "fchmodat": 2,
    "fchmodat2": 2,
    "creat": 1,
    "mknod": 1,
    "mknodat": 2,
}
_OPENING: Final = {"open": (1, 2), "openat": (2, 3)}
"""Calls whose mode counts only where their flags make a file: the places of both."""
_MAKES: Final = 0o100 | 0o20000000  # O_CREAT, __O_TMPFILE
_WRITES: Final = 0o3  # O_WRONLY, O_RDWR
_TOUCHING: Final = (
    *("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "process_madvise"),
    *("open_by_handle_at", "io_uring_setup"),
)
_OWN_PROCESS_ONLY: Final = ("sched_setscheduler", "sched_setparam", "sched_setattr")
_PRIO_PROCESS: Final = 0
_IOPRIO_WHO_PROCESS: Final = 1
_AF_UNIX: Final = 1
_AF_INET: Final = 2
_AF_INET6: Final = 10
_SOCK_STREAM: Final = 1
_SOCK_TYPE_MASK: Final = 0xF
"""The lower bits of socket(2)'s type; above them are SOCK_CLOEXEC and SOCK_NONBLOCK."""
_IPPROTO_TCP: Final = 6

Network: TypeAlias = Literal["none", "gateway", "open"]
"""What a stage may make sockets for: nothing but AF_UNIX, TCP too, or whatever it likes."""


def _op(code: int, value: int, hit: int = 0, miss: int = 0) -> bytes:
    return struct.pack("=HBBI", code, hit, miss, value)


def _refuse(error: int) -> bytes:
    return _op(_RETURN, _ERRNO | error)


def _argument(index: int, *, high: bool = False) -> bytes:
    return _op(_LOAD, 16 + 8 * index + (4 if high else 0))


def _rule(number: int, body: bytes) -> bytes:
    """Run `body`, which ends in a return, when the call has this number; keeps nr loaded."""
    steps = len(body) // 8
    return _op(_EQUAL, number, 0, steps) + body


def _refuse_any_bit(argument: int, bits: int) -> bytes:
    return (
        _argument(argument)
        + _op(_ANY_BIT, bits, 0, 1)
        + _refuse(errno.EPERM)
        + _op(_RETURN, _ALLOW)
    )


def _refuse_bits_of_made(flags: int, mode: int, bits: int) -> bytes:
    body = _refuse_any_bit(mode, bits)
    return _argument(flags) + _op(_ANY_BIT, _MAKES, 1, 0) + _op(_RETURN, _ALLOW) + body


def _refuse_unbounded_room() -> bytes:
    body = _op(_ANY_BIT, _KEEP_SIZE, 0, 1) + _refuse(errno.EOPNOTSUPP) + _op(_RETURN, _ALLOW)
    return _argument(1) + _op(_ANY_BIT, _PUNCH_HOLE, 0, 1) + _op(_RETURN, _ALLOW) + body


def _refuse_clones() -> bytes:
    """Refuse new namespaces, and threads with descriptors of their own, which hide there."""
    body = _argument(0) + _op(_AND, _CLONE_THREAD | _CLONE_FILES)
    body += _op(_EQUAL, _CLONE_THREAD, 1, 0) + _op(_RETURN, _ALLOW) + _refuse(errno.EPERM)
    return _argument(0) + _op(_ANY_BIT, _NAMESPACE_FLAGS, 0, 1) + _refuse(errno.EPERM) + body


def _refuse_limits_of_others() -> bytes:
    """Allow the caller's own (pid 0), and to look at all (a new limit whose two words are 0)."""
    body = _argument(2, high=True) + _op(_EQUAL, 0, 0, 1)
    body += _op(_RETURN, _ALLOW) + _refuse(errno.EPERM)
    body = _argument(2) + _op(_EQUAL, 0, 0, len(body) // 8 - 1) + body
    return _argument(0) + _op(_EQUAL, 0, 0, 1) + _op(_RETURN, _ALLOW) + body


def _allow_only(wanted: tuple[tuple[int, int], ...], error: int) -> bytes:
    """Allow when each argument's low word has its value; these arguments are C ints."""
    body = _refuse(error)
    body = _op(_RETURN, _ALLOW) + body
    for index, value in reversed(wanted):
        to_refusal = len(body) // 8 - 1
        body = _argument(index) + _op(_EQUAL, value, 0, to_refusal) + body
    return body


def _allow_streams() -> bytes:
    """Allow AF_UNIX, and of IP what is TCP: its type is a stream's, its protocol its own or 0."""
    allow, refuse = _op(_RETURN, _ALLOW), _refuse(errno.EAFNOSUPPORT)
    tcp = (
        _argument(1)
        + _op(_AND, _SOCK_TYPE_MASK)
        + _op(_EQUAL, _SOCK_STREAM, 0, 3)
        + _argument(2)
        + _op(_EQUAL, 0, 2, 0)
        + _op(_EQUAL, _IPPROTO_TCP, 1, 0)
        + refuse
        + allow
    )
    return (
        _argument(0)
        + _op(_EQUAL, _AF_UNIX, 3, 0)
        + _op(_EQUAL, _AF_INET, 3, 0)
        + _op(_EQUAL, _AF_INET6, 2, 0)
        + refuse
        + allow
        + tcp
    )


def _no_setid_bits(calls: Mapping[str, int]) -> bytes:
    """Refuse to give a file setuid or setgid bits, by a change of mode or at its making."""
    code = b""
    for name in calls.keys() & _MODE_ARGUMENT.keys():
        code += _rule(calls[name], _refuse_any_bit(_MODE_ARGUMENT[name], _SETID_BITS))
    for name in calls.keys() & _OPENING.keys():
        code += _rule(calls[name], _refuse_bits_of_made(*_OPENING[name], _SETID_BITS))
    return code


def _native(machine: str) -> bytes:
    """Begin a filter: end whoever calls by another architecture's numbers."""
    code = _op(_LOAD, _ARCH) + _op(_EQUAL, _ARCHITECTURES[machine], 1, 0)
    code += _op(_RETURN, _KILL_PROCESS) + _op(_LOAD, _NR)
    if machine == "x86_64":
        code += _op(_AT_LEAST, _X32_BIT, 0, 1) + _op(_RETURN, _KILL_PROCESS)
    return code


def watching(machine: str) -> bytes:
    """Return the filter of who looks at processes by CAP_SYS_PTRACE, and shall not touch them.

    It opens nothing to be written in, memory of others included, and takes no descriptor.

    Raises:
        KeyError: no table for this architecture.
    """
    calls = NUMBERS[machine] | _NEW_NUMBERS
    code = _native(machine)
    for name in _TOUCHING:
        code += _rule(calls[name], _refuse(errno.EPERM))
    code += _rule(calls["openat2"], _refuse(errno.ENOSYS))
    for name in calls.keys() & _OPENING.keys():
        code += _rule(calls[name], _refuse_any_bit(_OPENING[name][0], _WRITES | _MAKES))
    if "creat" in calls:
        code += _rule(calls["creat"], _refuse(errno.EPERM))
    return code + _op(_RETURN, _ALLOW)


def program(machine: str, *, network: Network, sysv: bool) -> bytes:
    """Return the filter for one architecture.

    sysv: SysV segments, semaphores and queues stay
    (where a uid tells whose they are, they can be counted and swept; elsewhere they can't be had).

    Raises:
        KeyError: no table for this architecture: the stage can't be confined here.
    """
    calls = NUMBERS[machine] | _NEW_NUMBERS
    code = _native(machine)
    if network == "none":
        code += _rule(calls["socket"], _allow_only(((0, _AF_UNIX),), errno.EAFNOSUPPORT))
    elif network == "gateway":
        code += _rule(calls["socket"], _allow_streams())
    for name in _ABSENT:
        code += _rule(calls[name], _refuse(errno.ENOSYS))
    for name in () if sysv else _SYSV:
        code += _rule(calls[name], _refuse(errno.ENOSYS))
    for name in _UNSUPPORTED:
        code += _rule(calls[name], _refuse(errno.EOPNOTSUPP))
    for name in _FORBIDDEN:
        code += _rule(calls[name], _refuse(errno.EPERM))
    code += _rule(calls["clone"], _refuse_clones())
    code += _rule(calls["close_range"], _refuse_any_bit(2, _CLOSE_RANGE_UNSHARE))
    code += _rule(calls["fallocate"], _refuse_unbounded_room())
    code += _no_setid_bits(calls)
    code += _rule(calls["prlimit64"], _refuse_limits_of_others())
    for name in _OWN_PROCESS_ONLY:
        code += _rule(calls[name], _allow_only(((0, 0),), errno.EPERM))
    code += _rule(calls["setpriority"], _allow_only(((0, _PRIO_PROCESS), (1, 0)), errno.EPERM))
    code += _rule(calls["ioprio_set"], _allow_only(((0, _IOPRIO_WHO_PROCESS), (1, 0)), errno.EPERM))
    return code + _op(_RETURN, _ALLOW)
