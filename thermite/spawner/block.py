"""A block: the clock locks are held and every slot but its own stands still.

Source: isolation, 4.1 (Blocks). What can't be frozen within a second is ended, and the block
begins when that is proven. No limit counts frozen time.

Two processes that send SIGCONT to each other in a loop undo a single SIGSTOP nearly always: one
of them is in that call, reaches the other after it was stopped, and stops itself too late. They
are stopped by signals that come faster than one that was woken can get to its next call.
"""

import os
import signal
import stat
import time
from typing import Final

from . import scan
from .clock import ClockLocks
from .ending import tree_of
from .ground import Ground, Live, Slot
from .killer import kill_uid
from .linux import raw_ns
from .loop import Step, Until
from .signalling import send_all
from .stage import Reply
from .vocabulary import Fields, RefusedError

_FREEZE_S: Final = 1.0
_ROUND_S: Final = 0.005
_TIMES: Final = (1, 16, 256)
"""Signals on end in a slot's first rounds, the last in all further ones: most slots stand still
after one, and 256 take some 5 ms."""
_MOST_SENT: Final = 4096
"""Signals that the spawner itself sends on end; nothing else is heard meanwhile, some 5 ms."""


class Blocks:
    """The block that runs now, if one does."""

    def __init__(self, ground: Ground) -> None:
        """Make ready for blocks.

        Raises:
            RefusedError, OSError: the folder of the clock locks can't be had.
        """
        lock_folder(ground)
        self._ground = ground
        self._locks = ClockLocks(lambda: lock_folder(ground))
        self._frozen: dict[str, tuple[Live, float, float | None]] = {}
        self._released = 0

    def begin(self, fields: Fields) -> Step[Reply]:
        """Take the clock locks, then freeze; replies with the milliseconds of each.

        Raises:
            RefusedError: a block runs already, or another rig holds a clock lock for too long.
        """
        ground = self._ground
        if ground.is_timing:
            raise RefusedError("a block runs already")
        ground.is_timing = True
        began, released = raw_ns(), self._released
        try:
            holder = yield from self._locks.take(
                fields["cpus"] or ground.run_cpus,
                fields["cards"],
                lambda: released == self._released,
            )
        except (OSError, RefusedError) as error:
            yield from self.release()
            raise RefusedError(f"no clock lock can be taken: {error}") from None
        if released != self._released:
            raise RefusedError("the block was given up: its harness is gone")
        if holder is not None:
            ground.is_timing = False
            raise RefusedError(f"another rig has held {holder} for ten minutes")
        locked = raw_ns()
        ground.timing.shut()
        try:
            ended = yield from self._freeze_all()
        except (OSError, RefusedError):
            yield from self.release()
            raise
        return {
            "lock_ms": round((locked - began) / 1e6, 3),
            "freeze_ms": round((raw_ns() - locked) / 1e6, 3),
            "ended": ended,
        }, []

    def end(self) -> Step[Reply]:
        """Let every slot go on and release the clock locks."""
        if not self._ground.is_timing:
            raise RefusedError("no block runs")
        yield from self.release()
        return {}, []

    def release(self) -> Step[None]:
        """Undo what begin did; also after the harness's death, when begin may still wait."""
        ground = self._ground
        self._released += 1
        for name, (live, since, left) in self._frozen.items():
            slot = ground.slots[name]
            if slot.live is not live:
                continue
            yield from _signal_all(ground, slot, signal.SIGCONT)
            if left is not None:
                live.deadline = time.monotonic() + left
            live.is_frozen = False
            live.frozen_s += time.monotonic() - since
            ground.loop.wake(live.task)
        self._frozen.clear()
        self._locks.release()
        ground.is_timing = False
        ground.timing.open()

    def _freeze_all(self) -> Step[list[str]]:
        """Freeze every slot that is not the block's own; return those that had to be ended.

        Raises:
            RefusedError: something of one could neither be frozen nor ended.
        """
        ended = []
        for slot, live in list(self._ground.lives()):
            if slot.in_block:
                continue
            now = time.monotonic()
            left = None if live.deadline is None else max(0.0, live.deadline - now)
            live.deadline, live.is_frozen = None, True
            self._frozen[slot.name] = (live, now, left)
            if not (yield from _frozen(self._ground, slot, live)):
                live.to_kill = True
                self._ground.loop.wake(live.task)
                yield from until_gone(slot, live)
                ended.append(slot.name)
        return ended


def _frozen(ground: Ground, slot: Slot, live: Live) -> Step[bool]:
    """Stop a slot's processes until a scan sees none of them moving."""
    give_up = time.monotonic() + _FREEZE_S
    rounds = 0
    while slot.live is live:
        times = _TIMES[min(rounds, len(_TIMES) - 1)]
        yield from _signal_all(ground, slot, signal.SIGSTOP, times)
        if not _moving(ground, slot):
            return True
        if time.monotonic() > give_up:
            return False
        rounds += 1
        yield Until((), time.monotonic() + _ROUND_S)
    return True


def until_gone(slot: Slot, live: Live) -> Step[None]:
    """Wait for the proven end of a slot's stage, which its own task brings about.

    Raises:
        RefusedError: something of it has survived.
    """
    while slot.live is live:
        yield Until((), time.monotonic() + _ROUND_S)
    if slot.quarantined is not None:
        raise RefusedError(slot.quarantined)


def _signal_all(ground: Ground, slot: Slot, number: int, times: int = 1) -> Step[None]:
    """Signal all of a slot so many times on end, or less often where there are many of them."""
    if slot.identity is not None:
        yield from kill_uid(ground, slot.uid, number, times)
        return
    found = tree_of(ground, slot)
    send_all(found, number, max(1, min(times, _MOST_SENT // max(1, len(found)))))


def _moving(ground: Ground, slot: Slot) -> list[int]:
    if slot.identity is not None:
        return scan.moving(slot.uid, ground.killer_pid)
    return [one.pid for one in tree_of(ground, slot) if one.state not in "Tt"]


def lock_folder(ground: Ground) -> str:
    """Return where clock locks lie, made if need be: the machine's, or this user's own.

    Raises:
        RefusedError: a plain user can have none of the folders that it could be.
    """
    if os.getuid() == 0:
        path = ground.settings.run_dir
        os.makedirs(path, 0o755, exist_ok=True)
        return path
    tried = _own_folders()
    for path in tried:
        if _is_private(path):
            return path
    raise RefusedError(
        f"none of {', '.join(tried)} can be a folder of yours alone with mode 0700,"
        " and clock locks need one: set XDG_RUNTIME_DIR to a folder of yours"
    )


def _own_folders() -> list[str]:
    """Return where a plain user's locks may lie, the best first, the same for all its rigs.

    In /tmp somebody else may have taken the name, to be in the way: then at home.
    """
    runtime, uid = os.environ.get("XDG_RUNTIME_DIR", ""), os.getuid()
    home = os.environ.get("HOME", "")
    return [
        *([f"{runtime}/thermite"] if os.path.isabs(runtime) else []),
        f"/tmp/thermite-{uid}",  # noqa: S108 - taken only where it is this user's alone
        *([f"{home}/.cache/thermite/locks"] if os.path.isabs(home) else []),
    ]


def _is_private(path: str) -> bool:
    """Return whether a folder is there, made if need be, that nobody else can enter."""
    try:
        os.makedirs(path, 0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
