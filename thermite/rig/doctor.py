"""What this machine can do to keep stages apart: each level tried, and what is in the way.

Nothing is reckoned from versions: for each level a spawner is started, and the canaries are
run in every slot of it. What is said is true of a rig that serves: a command that judges by itself,
as root, has the gap `caller_is_root` beside. Source: isolation, 4.2 (`thermite rig doctor`).
"""

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from thermite.errors import InfrastructureError
from thermite.rig.canary import probe
from thermite.rig.start import spawner
from thermite.schema.event import IsolationProbe
from thermite.schema.protection import is_protected
from thermite.schema.stage import LevelName
from thermite.schema.strict import Strict

LEVELS: Final[tuple[LevelName, ...]] = ("none", "namespaces", "users", "users+namespaces")
"""The levels that a spawner of this version can apply, the weakest first: `auto` takes the last."""
_NEEDED_PROGRAMS: Final = {
    "git": "kits, projects and candidates are commits: install git 2.39 or newer",
    "python3": "a kit's check may need it",
    "cc": "builds of C need it",
}
_DAEMONS: Final = ("crontab", "at", "systemd-run")
"""What a stage could ask to run something later (isolation, row 33)."""
_CHILD_IS_ROOT: Final = (
    "needs level users, and an interpreter and Thermite that the rig's users can read:"
    " install under /opt"
)
GAPS: Final[Mapping[str, str]] = {
    "abstract_sockets": "needs Landlock ABI 6 (Linux 6.12): update the kernel",
    "caller_is_root": "a command that judges is root itself: let a rig serve, or be a plain user",
    "clock_lock": "rigs of other users may time at once: run as root",
    "files": "needs Landlock (Linux 5.13), enabled at boot, or level users",
    "harness_is_root": _CHILD_IS_ROOT,
    "killer_priority": "give the process CAP_SYS_NICE",
    "leftovers": "a stage may leave what is not found: run as root",
    "network": "needs seccomp on x86-64 or aarch64",
    "queued_memory": "no remedy in this version; the kernel ends a stage first",
    "signals": "needs Landlock ABI 6 (Linux 6.12), or level users",
    "supervisor_is_root": _CHILD_IS_ROOT,
    "unmapped_memory": "memfds can't be counted: give CAP_SYS_PTRACE (Docker: --cap-add)",
    "unix_sockets": "a stage reaches your sockets that have a path: needs namespaces or users",
}
"""Every gap that a record can name, and what to do about it."""
_MAKE_USERS: Final = (
    "run as root, in a container with CAP_SETUID, CAP_SETGID, CAP_KILL, CAP_CHOWN and"
    " CAP_DAC_READ_SEARCH or CAP_DAC_OVERRIDE (Docker's default set has them)"
)
_HOW: Final[Mapping[LevelName, str]] = {
    "users": _MAKE_USERS,
    "users+namespaces": f"{_MAKE_USERS}, and CAP_SYS_ADMIN",
}
_ALLOW_IN_CONTAINER: Final = (
    "in a container: allow unshare, mount and pivot_root, and leave /proc unmasked"
    " (Docker: --security-opt seccomp=unconfined --security-opt systempaths=unconfined)"
)
_FORBIDS_NAMESPACES: Final[Mapping[str, tuple[str, str]]] = {
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "user.max_user_namespaces": ("0", "15000"),
}
"""Settings of Ubuntu, of Debian and of the kernel: what forbids plain users' namespaces."""


class LevelTried(Strict):
    """One level: whether it can be had, what it applied, and how to get what it lacks.

    canaries: what a stage tried to its result, blocked, open or unknown; to_do: in words.
    """

    level: LevelName
    had: bool
    why_not: str | None
    features: list[str]
    gaps: list[str]
    canaries: dict[str, str]
    protected: bool
    to_do: list[str]


class Diagnosis(Strict):
    """All levels, the one that `auto` takes, and what else is in the way."""

    uid: int
    cpus: int
    takes: LevelName
    levels: list[LevelTried]
    notes: list[str]


def examine() -> Diagnosis:
    """Try every level on this machine; it takes some seconds and leaves nothing.

    Raises:
        InfrastructureError: not even level none can be had.
    """
    tried = [_tried(level) for level in LEVELS]
    had = [one for one in tried if one.had]
    if not had:
        raise InfrastructureError(f"no level can be had here: {tried[0].why_not}")
    return Diagnosis(
        uid=os.getuid(),
        cpus=len(os.sched_getaffinity(0)),
        takes=had[-1].level,
        levels=tried,
        notes=_notes(),
    )


def _tried(level: LevelName) -> LevelTried:
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="thermite-doctor-") as name:
        try:
            return _told(level, _probed(Path(name), level))
        except InfrastructureError as error:
            return _absent(level, str(error), _to_do(level))


def _to_do(level: LevelName) -> list[str]:
    if level == "namespaces":
        return [] if os.getuid() == 0 else allow_namespaces()
    return [_HOW[level]] if level in _HOW else []


def _probed(top: Path, level: LevelName) -> IsolationProbe:
    top.chmod(0o711)
    state = top / "rig"
    state.mkdir(mode=0o711)
    (state / "repos").mkdir(mode=0o700)
    secret = state / "repos" / "canary"
    secret.write_bytes(b"a stage that reads this reads kits\n")
    with spawner(state, isolation=level, tries_children=True) as stages:
        return probe(stages, {"kit": secret}, state / "canary-from-a-stage", os.getpid())


def _told(level: LevelName, seen: IsolationProbe) -> LevelTried:
    return LevelTried(
        level=level,
        had=True,
        why_not=None,
        features=list(seen.features),
        gaps=list(seen.gaps),
        canaries=dict(seen.canaries),
        protected=is_protected(seen),
        to_do=[f"{gap}: {GAPS.get(gap, 'no remedy is known')}" for gap in seen.gaps],
    )


def _absent(level: LevelName, why: str, to_do: list[str]) -> LevelTried:
    return LevelTried(
        level=level,
        had=False,
        why_not=why,
        features=[],
        gaps=[],
        canaries={},
        protected=False,
        to_do=to_do,
    )


def allow_namespaces(proc_sys: Path = Path("/proc/sys")) -> list[str]:
    """Return what a machine's owner does so that plain users may make namespaces."""
    to_do = []
    for name, (forbids, allows) in _FORBIDS_NAMESPACES.items():
        path = proc_sys / name.replace(".", "/")
        if path.is_file() and path.read_text(encoding="ascii").strip() == forbids:
            to_do.append(f"{name} is {forbids}: as root, sysctl -w {name}={allows}")
    return to_do or [_ALLOW_IN_CONTAINER]


def _notes() -> list[str]:
    """Return what else a rig's owner should know of this machine."""
    notes = [
        f"{name} is not on the PATH: {why}"
        for name, why in _NEEDED_PROGRAMS.items()
        if shutil.which(name) is None
    ]
    notes += [
        f"{name} is installed: what a stage leaves with it would run later"
        for name in _DAEMONS
        if shutil.which(name) is not None
    ]
    if len(os.sched_getaffinity(0)) == 1:
        notes.append("one CPU: runs are timed on the CPU that everything else uses")
    return notes
