"""What a dead spawner of this rig has left: live processes of its uids, and stage folders.

At level none its stages have no uid of their own, and are known by where they work; one that
hides that is not found: the gap `leftovers`.
"""

import contextlib
import os
import signal
import sys
import time
from typing import Final

from . import scan
from .child import Identity
from .elsewhere import forget_root, is_still_ours, noted_roots
from .folders import empty_it
from .fork import Garb, finished, fork
from .ground import Ground
from .killer import kill_uid
from .loop import Step, Until
from .tree import FOLDER
from .vocabulary import RefusedError

_LONGEST_S: Final = 5.0
_ROUND_S: Final = 0.005
_SWEEP_S: Final = 120.0


def clear_left_behind(ground: Ground) -> Step[None]:
    """Empty the uids and the stage root before anything else is done with them.

    Raises:
        RefusedError: an assertion of the killer does not hold.
    """
    leases = ground.level.leases
    if leases is not None:
        in_use = {uid: slot for slot, uid in leases.held.items()}
        for uid in list(leases.left_behind):
            left = 0 if uid == ground.level.reaper else (yield from _emptied(ground, uid))
            if uid not in in_use and not left:
                leases.release(uid)
            elif left and in_use.get(uid) in ground.slots:
                slot = ground.slots[in_use[uid]]
                slot.quarantined = f"isolation: {left} processes of {slot.word} survived"
    for root in (ground.stage_root, *noted_roots(ground.settings)):
        if root != ground.stage_root and not is_still_ours(root):
            forget_root(ground.settings, root)
            continue
        if leases is None:
            yield from _end_stages(root)
        for name in os.listdir(root):
            yield from _removed(ground, f"{root}/{name}")
        if root not in {ground.stage_root, ground.settings.stage_root}:
            os.rmdir(root)
            forget_root(ground.settings, root)


def _emptied(ground: Ground, uid: int) -> Step[int]:
    give_up = time.monotonic() + _LONGEST_S
    while (left := len(scan.living(uid, ground.killer_pid))) and time.monotonic() < give_up:
        yield from kill_uid(ground, uid, signal.SIGKILL)
        ground.reap()
        yield Until((), time.monotonic() + _ROUND_S)
    return left


def _end_stages(root: str) -> Step[None]:
    """End what a dead spawner's stages left at level none, each by its own pidfd."""
    give_up = time.monotonic() + _LONGEST_S
    while time.monotonic() < give_up:
        held = _held(scan.staged_below(os.getuid(), root))
        # Looked at again with the pidfd in hand: a number may have gone to somebody else.
        still = scan.staged_below(os.getuid(), root) if held else []
        for pid, pidfd in held.items():
            with contextlib.suppress(ProcessLookupError):
                if pid in still:
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.close(pidfd)
        if not still:
            return
        yield Until((), time.monotonic() + _ROUND_S)


def _held(pids: list[int]) -> dict[int, int]:
    """Return a pidfd for each process that is still there."""
    found = {}
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            found[pid] = os.pidfd_open(pid)
    return found


def _removed(ground: Ground, path: str) -> Step[None]:
    """Remove a folder with what is in it, as the user that it belongs to."""
    try:
        fd = os.open(path, FOLDER)
    except OSError:
        return
    try:
        found = os.fstat(fd)
        owner = Identity(found.st_uid, found.st_gid) if os.getuid() == 0 else None
        one = ground.adopt(fork(empty_it, [fd], Garb(owner)))
        yield from finished(one, time.monotonic() + _SWEEP_S)
        ground.children.discard(one.pid)
    finally:
        os.close(fd)
    try:
        os.rmdir(path)
    except OSError as error:
        sys.stderr.write(f"thermite spawner: {path}: {error.strerror}\n")


def run_to_end(ground: Ground, steps: Step[None]) -> None:
    """Run one task before the spawner serves anybody.

    Raises:
        RefusedError: whatever the task raises.
    """
    failed: list[RefusedError] = []

    def whole() -> Step[None]:
        try:
            yield from steps
        except RefusedError as error:
            failed.append(error)
        ground.loop.stopping = True

    ground.loop.start(whole())
    ground.loop.run()
    ground.loop.stopping = False
    if failed:
        raise failed[0]
