"""Whether the users that were leased can reach what they need, tried and not reckoned.

Source: isolation, 4.2, "Where things may lie", and finding 6: as another user nothing works
below a folder that this user may not enter, and it shows late and in odd places.
"""

import fcntl
import os
import sys
from collections.abc import Sequence
from typing import Final

from .child import Identity, take_identity
from .elsewhere import forget_root, new_root
from .ground import Ground
from .settings import BadSettingsError, Program
from .tree import FOLDER

_IMPORT: Final = "import sys; [__import__(name) for name in sys.argv[1:]]"


def settle_places(ground: Ground) -> None:
    """Find a stage root that all slots can reach, and find out as whom the harness can run.

    Raises:
        BadSettingsError: a user can't reach what it needs, and nothing else is allowed.
    """
    settings = ground.settings
    if ground.level.name == "none":
        return
    blocked = _blocked(ground, settings.stage_root)
    if blocked is not None and settings.fallback_root is None:
        raise BadSettingsError(blocked)
    if blocked is not None:
        ground.stage_root = new_root(settings)
        ground.owns_stage_root = True
        _make_stage_root(ground.stage_root)
        blocked = _blocked(ground, ground.stage_root)
        if blocked is not None:
            raise BadSettingsError(blocked)
    _settle_children(ground)
    _try_children(ground)


def _make_stage_root(path: str) -> None:
    before = os.umask(0)
    try:
        os.makedirs(path, 0o711, exist_ok=True)
    finally:
        os.umask(before)


def hold_stage_root(folder: str) -> None:
    """Make the stage root and hold it for life: two spawners would sweep each other's.

    Raises:
        BadSettingsError: another spawner holds it.
    """
    _make_stage_root(folder)
    fd = os.open(folder, FOLDER)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise BadSettingsError(f"another rig runs in {folder}: stop it first") from None


def _blocked(ground: Ground, folder: str) -> str | None:
    """Return in words why a slot's user can't enter `folder`, None when all can."""
    for slot in ground.slots.values():
        if slot.identity is not None and not can_reach(slot.identity, ((folder, os.X_OK),)):
            return _out_of_reach(slot.word, folder)
    return None


def _out_of_reach(word: str, folder: str) -> str:
    parent = _closed_parent(folder)
    mode = os.stat(parent).st_mode & 0o7777
    return (
        f"user {word} cannot reach {folder}: it is below {parent} with mode"
        f" {mode:04o}; choose --state under /var/lib or chmod o+x {parent}"
    )


def _closed_parent(folder: str) -> str:
    """Return the topmost folder on the way that others may not enter."""
    here = ""
    for part in folder.strip("/").split("/"):
        here = f"{here}/{part}"
        if not os.stat(here).st_mode & 0o001:
            return here
    return folder


def _settle_children(ground: Ground) -> None:
    """Let a child run as root without capabilities where its user can't reach what it needs."""
    level = ground.level
    for name, program in ground.settings.children.items():
        identity = level.harness if name == "harness" else level.supervisor
        if identity is None:
            continue
        word = "thermite" if name == "harness" else name
        blocked = _child_blocked(identity, word, program, ground.settings.state)
        if blocked is None:
            continue
        if ground.settings.fallback_root is None:
            raise BadSettingsError(blocked)
        level.gaps.append(f"{name}_is_root")
        if name == "harness":
            level.harness = None
        else:
            level.supervisor = None


def _try_children(ground: Ground) -> None:
    """Name the children of a rig that serves that its users could not start here."""
    level, settings = ground.level, ground.settings
    if level.leases is None:
        return
    for name, program in settings.tried.items():
        word = "thermite" if name == "harness" else name
        uid = level.leases.held[word]
        if _child_blocked(Identity(uid, uid), word, program, settings.state) is not None:
            level.gaps.append(f"{name}_is_root")


def _child_blocked(identity: Identity, word: str, program: Program, state: str) -> str | None:
    """Return in words what a child's user can't reach, None when it can all."""
    above = os.path.dirname(state)  # the folder itself gets its owners only later
    if not can_reach(identity, ((above, os.X_OK),)):
        return _out_of_reach(word, above)
    if not _can_start(identity, program):
        return (
            f"user {word} cannot read the interpreter {program.argv[0]} or the package:"
            " install under /opt, or with pipx install --global"
        )
    return None


def _can_start(identity: Identity, program: Program) -> bool:
    """Try, as that user, whether the interpreter runs and can import the program's module."""
    module = program.argv[program.argv.index("-m") + 1 :][:1] if "-m" in program.argv else ()
    argv = [program.argv[0], "-P", "-c", _IMPORT, *module]
    pid = os.fork()
    if pid == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
            null = os.open("/dev/null", os.O_RDWR)
            for fd in range(3):
                os.dup2(null, fd)
            os.chdir("/")
            take_identity(identity)
            os.execve(argv[0], argv, dict(program.env))
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def can_reach(identity: Identity, needs: Sequence[tuple[str, int]]) -> bool:
    """Try, as that user, whether every path allows what is needed, and whether there is one."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            take_identity(identity)
            code = 0 if all(os.access(path, mode) for path, mode in needs) else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def leave_places(ground: Ground) -> None:
    """Leave no trace of a spawner that served one client."""
    leases = ground.level.leases
    if leases is not None and ground.settings.client_fd is not None:
        leases.end()
    leave_stage_root(ground)


def leave_stage_root(ground: Ground) -> None:
    """Remove a stage root that was made for this ground alone."""
    if not ground.owns_stage_root:
        return
    try:
        os.rmdir(ground.stage_root)
        forget_root(ground.settings, ground.stage_root)
    except OSError as error:
        sys.stderr.write(f"thermite spawner: {ground.stage_root}: {error.strerror}\n")
