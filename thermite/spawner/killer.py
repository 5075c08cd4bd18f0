"""kill(-1) as a slot's user, by a process that the slot's user cannot touch.

Source: isolation, finding 1 and section 4.1 (killer). The killer's real and saved uid is
the reaper's, R, its effective uid the slot's: kill(2) then reaches exactly the processes
of both, and nobody of the slot may signal it. A real uid of 0 would end every root process
of the machine, so any assertion that does not hold means: do not kill. Two killers with one
R would end each other: one at a time.
"""

import os
import signal
import time
from typing import Final

from . import scan
from .ahead import Ahead
from .deadly import DONE
from .ground import Ground
from .loop import Step, Until
from .vocabulary import RefusedError

_DEADLINE_S: Final = 1.0
_ROUND_S: Final = 0.01
PRIORITY: Final = 5
"""SCHED_FIFO of the spawner, inherited by the killer (isolation, finding 3)."""


def kill_uid(ground: Ground, uid: int, number: int, times: int = 1) -> Step[None]:
    """Send one signal to every process of a leased uid, so many times on end.

    It may come to nothing when the killer is starved: the caller scans and asks again.

    Raises:
        RefusedError: an assertion does not hold, for a second where it is about somebody else's
            process; nothing was killed.
        OSError: the machine has no process or no descriptor left for it; nothing was killed.
    """
    yield from ground.killing.taken()
    try:
        if (yield from _last_one_is_gone(ground)):
            _assert_own(ground, uid)
            yield from _assert_alone(ground)
            yield from _kill(ground, uid, number, times)
    finally:
        ground.killing.open()


def _last_one_is_gone(ground: Ground) -> Step[bool]:
    """Bury the last killer; false while it still lives."""
    if ground.late_killer is None:
        return True
    one = ground.late_killer
    if one.pidfd not in (yield Until((one.pidfd,), time.monotonic() + _DEADLINE_S)):
        return False
    os.waitpid(one.pid, 0)
    one.close()
    ground.children.discard(one.pid)
    ground.late_killer = None
    return True


def _assert_own(ground: Ground, uid: int) -> None:
    """Hold what must hold of this rig before a killer gets its order."""
    reaper, leases = ground.level.reaper, ground.level.leases
    if reaper is None or leases is None:
        raise RefusedError(f"isolation: uid {uid} is not a slot's own")
    if not (leases.owns(uid) and leases.owns(reaper)):
        raise RefusedError(f"isolation: uids {uid} and {reaper} are not both this rig's")
    if 0 in {uid, reaper} or uid == reaper:
        raise RefusedError(f"isolation: uids {uid} and {reaper} can't make a killer")


def _assert_alone(ground: Ground) -> Step[None]:
    """Hold that nobody else has the killer's real uid: it would be killed, too."""
    reaper, give_up = ground.level.reaper, time.monotonic() + _DEADLINE_S
    if reaper is None:
        raise RefusedError("isolation: this rig has no killer")
    while found := scan.holders_of(reaper):
        if time.monotonic() > give_up:
            raise RefusedError(
                f"isolation: process {found[0]} has uid {reaper}, which this rig leased for its"
                " killer: it would be killed, too; end it, or choose others with"
                " THERMITE_UID_RANGE"
            )
        yield Until((), time.monotonic() + _ROUND_S)


def _kill(ground: Ground, uid: int, number: int, times: int) -> Step[None]:
    one = ground.take_killer()
    try:
        one.line.send(b"%d %d %d" % (uid, number, times))
    except OSError:
        ground.children.discard(one.pid)
        os.waitpid(one.pid, 0)
        one.close()
        return  # it had died while it waited: the caller scans and asks again
    ground.late_killer = one
    if one.line.fileno() not in (yield Until((one.line.fileno(),), time.monotonic() + _DEADLINE_S)):
        _give_up(ground, one)
    elif _word(one) != DONE:
        raise RefusedError(f"isolation: the killer of uid {uid} was not what it must be")


def _word(one: Ahead) -> bytes:
    try:
        return one.line.recv(64)
    except OSError:
        return b""


def _give_up(ground: Ground, one: Ahead) -> None:
    """End a starved killer without waiting for it, with what the attacker took given back."""
    signal.pidfd_send_signal(one.pidfd, signal.SIGKILL)
    if ground.level.is_realtime:
        os.sched_setscheduler(one.pid, os.SCHED_FIFO, os.sched_param(PRIORITY))
    os.sched_setaffinity(one.pid, ground.all_cpus)
