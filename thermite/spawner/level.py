"""Finding out which isolation this spawner can apply, and with which users."""

import os
from typing import Final

from . import landlock, linux
from .child import Identity
from .ground import Ground, Level, Slot
from .killer import PRIORITY
from .own_view import can_enter
from .ownership import drop_group
from .reach import can_reach
from .seccomp import NUMBERS
from .settings import BadSettingsError, Settings
from .uids import REAPER, Leases
from .watching import UNMAPPED

FEWEST_CPUS: Final = 2
"""Fewest CPUs for real-time runs: one for the run, one for everything else."""
_NEEDED: Final = {
    "CAP_CHOWN": linux.CAP_CHOWN,
    "CAP_KILL": linux.CAP_KILL,
    "CAP_SETGID": linux.CAP_SETGID,
    "CAP_SETUID": linux.CAP_SETUID,
}


BEST_FIRST: Final = ("users+namespaces", "users", "namespaces", "none")
"""What `auto` tries, in this order."""


_FOR_OTHERS: Final = "it is a plain user's level: root takes users or users+namespaces"


def level_of(settings: Settings, name: str, leases: Leases) -> tuple[Level, dict[str, Slot]] | str:
    """Return a level with its slots as this process would apply it, or in words why it can't.

    Args:
        leases: of this rig; they are taken where the level needs users.

    Raises:
        BadSettingsError: the range has not enough free uids.
    """
    if name == "none":
        return _none(settings)
    if name == "namespaces":
        return _namespaces(settings) if os.getuid() else _FOR_OTHERS
    problem = _no_users() or _unmapped(settings.uid_range)
    if problem is None and name == "users+namespaces":
        problem = can_enter(settings.stage_root)
        problem = problem and f"{problem}: it needs CAP_SYS_ADMIN"
    if problem is not None:
        return problem
    level, slots = _users(settings, leases)
    problem = _no_second_user(leases)
    if problem is not None:
        return problem
    if name == "users+namespaces":
        _add_namespaces(level)
    return level, slots


def _add_namespaces(level: Level) -> None:
    """Give every stage a view of its own."""
    level.name, level.own_view, level.own_pids = "users+namespaces", True, True
    level.features += ["pidns", "mntns", "ipcns", "netns", "tmpfs"]
    level.network = "netns+seccomp" if level.network == "seccomp" else "netns"
    if "network" in level.gaps:
        level.gaps.remove("network")


def _no_users() -> str | None:
    """Return why stages can't have users of their own, None when they can."""
    if os.getuid() != 0:
        return "it needs root"
    effective, _ = linux.capabilities()
    missing = [name for name, bit in _NEEDED.items() if not effective >> bit & 1]
    if not _watch_capability():
        missing.append("CAP_DAC_READ_SEARCH")
    return f"{', '.join(missing)} missing" if missing else None


def _unmapped(uid_range: tuple[int, int]) -> str | None:
    """Return why the range can't be had by what the kernel tells, as a container may have one user.

    Nothing is leased there, nor a number tried: the folder of the leases may be nobody's to write.
    """
    with open("/proc/self/uid_map", encoding="ascii") as file:
        spans = [(int(first), int(count)) for first, _, count in map(str.split, file)]
    for uid in uid_range:
        if not any(first <= uid < first + count for first, count in spans):
            return _cannot_take(uid)
    return None


def _no_second_user(leases: Leases) -> str | None:
    """Try the first and the last uid leased, as a filter may refuse what the kernel would give.

    None that is not this rig's is ever tried: it may be the one of another rig's killer, which
    must not kill while somebody else has it.
    """
    for uid in (min(leases.held.values()), max(leases.held.values())):
        if not can_reach(Identity(uid, uid), ()):
            return _cannot_take(uid)
    return None


def _cannot_take(uid: int) -> str:
    return f"uid {uid} can't be taken here: choose others with THERMITE_UID_RANGE"


def _watch_capability() -> int:
    """Return what attendant and collector keep: leave to read, else Docker's wider one."""
    effective, _ = linux.capabilities()
    for bit in (linux.CAP_DAC_READ_SEARCH, linux.CAP_DAC_OVERRIDE):
        if effective >> bit & 1:
            return 1 << bit
    return 0


def _look_capability() -> int:
    """Return what an attendant keeps to see what another user's processes hold, 0: it can't.

    The second one is for what is mapped and has no descriptor any more; it goes without.
    """
    effective, _ = linux.capabilities()
    wanted = 1 << linux.CAP_SYS_PTRACE
    return effective & (wanted | 1 << linux.CAP_CHECKPOINT_RESTORE) if effective & wanted else 0


def _confinement(settings: Settings) -> Level:
    """Return what every level has: no_new_privs, seccomp and Landlock where they exist."""
    version = landlock.abi()
    features, gaps = ["nnp"], ["queued_memory"]
    if linux.MACHINE in NUMBERS:
        features.append("seccomp")
    if version:
        features.append(f"landlock:{version}")
    if version < landlock.SCOPE_ABI:
        gaps.append("abstract_sockets")
    if "seccomp" not in features:
        gaps.append(UNMAPPED)  # a thread could have descriptors that nobody is told of
    network = "seccomp" if "seccomp" in features else "open"
    if network == "open":
        gaps.append("network")
    if os.getuid() == 0 and settings.client_fd is not None and not settings.tried:
        gaps.append("caller_is_root")
    return Level("none", features, network, gaps, version)


def _none(settings: Settings) -> tuple[Level, dict[str, Slot]]:
    """Level none: every slot is this user; Landlock keeps the files where there is one."""
    level = _confinement(settings)
    level.gaps.append("unix_sockets")
    if os.getuid() != 0:
        level.gaps.append("clock_lock")
    elif settings.children or settings.tried:  # here everything has one user: this one
        level.gaps += ["harness_is_root", "supervisor_is_root"]
    if level.landlock < landlock.SCOPE_ABI:
        level.gaps.append("signals")
    if not level.landlock:
        level.gaps += ["files", "leftovers"]
    return level, {name: Slot(name, net, None) for name, net in settings.slots.items()}


def _namespaces(settings: Settings) -> tuple[Level, dict[str, Slot]]:
    """Level namespaces: every slot is this user, in a machine of its own; no other user exists."""
    level = _confinement(settings)
    level.name, level.own_view, level.own_pids = "namespaces", True, True
    level.features += ["userns", "pidns", "mntns", "ipcns", "netns", "tmpfs"]
    level.network = "netns+seccomp" if level.network == "seccomp" else "netns"
    level.gaps = ["clock_lock", *(one for one in level.gaps if one in {"queued_memory", UNMAPPED})]
    return level, {name: Slot(name, net, None) for name, net in settings.slots.items()}


def _users(settings: Settings, leases: Leases) -> tuple[Level, dict[str, Slot]]:
    """Level users: every slot has a leased uid, and the killer one of its own."""
    level = _confinement(settings)
    level.name = "users"
    level.watch_capability = _watch_capability()
    level.look_capability = _look_capability() if "seccomp" in level.features else 0
    if not level.look_capability and UNMAPPED not in level.gaps:
        level.gaps.append(UNMAPPED)
    ours = ["thermite", "supervisor"] if settings.children or settings.tried else []
    leases.take([REAPER, *ours, *settings.slots])
    level.leases, level.reaper = leases, leases.held[REAPER]
    if settings.children:
        supervisor = leases.held["supervisor"]
        droppers = drop_group()  # else it could not enter the inbox, which is theirs
        groups = () if droppers is None else (droppers,)
        level.supervisor = Identity(supervisor, supervisor, groups)
        harness = leases.held["thermite"]
        level.harness = Identity(harness, harness, (supervisor,))
    if not _take_priority(level):
        level.gaps.append("killer_priority")
    slots = {}
    for name, network in settings.slots.items():
        uid = leases.held[name]
        slots[name] = Slot(name, network, Identity(uid, uid))
    return level, slots


def allow_realtime(ground: Ground) -> None:
    """Note that timed runs get real-time priority here.

    Raises:
        BadSettingsError: they can't have it on this machine, or must not.
    """
    with open("/proc/sys/kernel/sched_rt_runtime_us", encoding="ascii") as file:
        unbounded = int(file.read()) < 0
    if not ground.level.is_realtime:
        problem = (
            "the spawner needs CAP_SYS_NICE, a control group that has real-time, and stages with"
            " users of their own"
        )
    elif len(ground.all_cpus) < FEWEST_CPUS:
        problem = "on one CPU a run would hold up the spawner"
    elif unbounded:
        problem = "sched_rt_runtime_us is -1, so nothing would stop a run that spins"
    else:
        ground.level.features.append("realtime")
        return
    raise BadSettingsError(f"realtime_runs can't be had: {problem}; take it out of rig.toml")


def _take_priority(level: Level) -> bool:
    """Become SCHED_FIFO, so that no stage's processes can keep the killer waiting."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except PermissionError:
        return False
    level.is_realtime = True
    return True
