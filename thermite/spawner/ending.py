"""The end of a stage: everything of it is killed, and its absence is proven.

Source: isolation, 4.1, "End of every stage". With a uid of its own, the killer's one
kill(-1) reaches all of it; at level none every descendant that fell to this process, as
subreaper, is ended by pidfd, round by round. Not zero within the time is never the
candidate's fault: the slot is quarantined.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from . import scan
from .absence import anybody
from .ground import Ground, Live, Slot
from .holding import hold_all_leases
from .killer import kill_uid
from .linux import raw_ns
from .loop import Step, Until
from .signalling import kill_each, send
from .vocabulary import RefusedError

_LONGEST_S: Final = 5.0
_ROUND_S: Final = 0.002
_ROUNDS_S: Final = 1.0
_STRAYS_S: Final = 10.0
_AT_LEAST: Final = 1
"""Who is left where that could not be looked at."""


@dataclass(frozen=True)
class Proof:
    """What the last look found, after how many rounds of killing and milliseconds.

    No round: when the main process had been reaped, nobody was left to be killed. swept:
    entries removed.
    """

    survivors: int
    rounds: int
    kill_ms: float
    swept: int = 0


def kill_main(live: Live) -> None:
    """Kill a stage's main process, also where it has no uid of its slot's yet."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(live.pidfd, signal.SIGKILL)


def reap_main(ground: Ground, live: Live) -> None:
    """Take in how the main process ended, once it has."""
    if live.ended is None:
        # Of a zombie, too, the kernel says where it could run; of a reaped process nothing.
        live.cpus = os.sched_getaffinity(live.main)
        pid, status, usage = os.wait4(live.main, os.WNOHANG)
        if pid:
            ground.children.discard(live.main)
            live.ended = (status, usage)


def end_slot(ground: Ground, slot: Slot) -> Step[Proof]:
    """Kill whatever is left of a slot's stage and prove that nothing is.

    A machine that has no process or descriptor left is asked again until the time is over.

    Raises:
        RefusedError: an assertion of the killer does not hold; nothing was killed.
    """
    began = raw_ns()
    give_up = time.monotonic() + _LONGEST_S
    rounds, why = 0, ""
    while True:
        if slot.live is not None:
            reap_main(ground, slot.live)
        try:
            if _is_nobody_left(ground, slot):
                left = 0
                break
            rounds += 1
            left, why = (yield from _way(slot)(ground, slot)), ""
        except RefusedError as refusal:
            slot.quarantined = str(refusal)
            raise
        except OSError as error:
            left, why = _AT_LEAST, f": {error}"
        if not left or time.monotonic() > give_up:
            break
        yield Until((), time.monotonic() + _ROUND_S)
    if slot.live is not None:
        reap_main(ground, slot.live)
    if left:
        slot.quarantined = f"isolation: {left} processes of {slot.word} survived{why}"
    return Proof(left, rounds, round((raw_ns() - began) / 1e6, 3))


def _is_nobody_left(ground: Ground, slot: Slot) -> bool:
    """Return whether the kernel knows no process of the slot's user: nothing to kill, proven."""
    if slot.identity is None or not ground.level.sees_absence or not _is_reaped(slot):
        return False
    if slot.live is not None and slot.live.init is not None:
        return False
    ground.reap()
    return not anybody(slot.uid)


def _way(slot: Slot) -> Callable[[Ground, Slot], Step[int]]:
    if slot.live is not None and slot.live.init is not None:
        return _end_namespace if slot.identity is None else _end_namespace_and_uid
    return _end_tree if slot.identity is None else _end_uid


def _end_namespace_and_uid(ground: Ground, slot: Slot) -> Step[int]:
    """Do both, as no process of a slot's user should be elsewhere, and none may be."""
    left = yield from _end_namespace(ground, slot)
    if not left and _is_nobody_left(ground, slot):
        return 0
    return (yield from _end_uid(ground, slot))


def _end_namespace(ground: Ground, slot: Slot) -> Step[int]:
    """Kill process 1 of a stage's pid namespace: when it has ended, all in there have.

    The kernel waits for the main process to be buried, which is a child of this one.
    """
    live, deadline = slot.live, time.monotonic() + _ROUNDS_S
    if live is None or live.init is None:
        return 0
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(live.init.pidfd, signal.SIGKILL)
    while live.ended is None and time.monotonic() < deadline:
        yield Until((live.pidfd,), deadline)
        reap_main(ground, live)
    yield Until((live.init.pidfd,), deadline)
    if os.waitpid(live.init.pid, os.WNOHANG) == (0, 0):
        return len(tree_of(ground, slot)) or 1
    ground.children.discard(live.init.pid)
    live.init.close()
    live.init = None
    return 0


def _end_uid(ground: Ground, slot: Slot) -> Step[int]:
    try:
        yield from kill_uid(ground, slot.uid, signal.SIGKILL)
    except OSError:  # no process can be made, as where a bomb has taken all: each gives one back
        kill_each(slot.uid, ground.killer_pid)
    ground.reap()
    left = len(scan.living(slot.uid, ground.killer_pid))
    if not left:
        ground.reap()  # those that have ended since
    return left


def _end_tree(ground: Ground, slot: Slot) -> Step[int]:
    ground.settle_ahead()
    ground.reap()
    children = scan.own_children()
    if _is_reaped(slot) and children is not None and children <= ground.children:
        return 0  # whatever main left behind would be a child of this process by now
    found = tree_of(ground, slot)
    for one in found:
        send(one, signal.SIGKILL)
    if found:
        yield Until((), time.monotonic() + _ROUND_S)
        ground.reap()
    return len(tree_of(ground, slot)) if found else 0


def _is_reaped(slot: Slot) -> bool:
    return slot.live is None or slot.live.ended is not None


def tree_of(ground: Ground, slot: Slot) -> list[scan.Seen]:
    """Return what is live of a stage without a user of its own: its tree, and orphans.

    Those of its pid namespace are its own; elsewhere nobody can tell whose they are: all.
    """
    ground.settle_ahead()  # what is not known yet would be taken for an orphan
    table = scan.all_seen()
    live = slot.live
    if live is not None and live.init is not None:
        within = scan.below((live.main, live.init.pid), table)
        return [table[pid] for pid in within - {live.init.pid}]
    roots = {
        one.pid
        for one in table.values()
        if one.parent == os.getpid() and one.pid not in ground.children
    }
    if slot.live is not None and slot.live.ended is None:
        roots.add(slot.live.main)
    return [table[pid] for pid in scan.below(roots, table)]


def end_strays(ground: Ground) -> None:
    """Kill whatever fell to this process and belongs to no slot."""
    uids = {slot.uid for slot, _ in ground.lives()}
    if os.getuid() in uids:
        return  # level none: an orphan may belong to the stage that runs now
    ground.settle_ahead()
    children = scan.own_children()
    if children is not None and children <= ground.children:
        return
    table = scan.all_seen()
    for root in [one for one in table.values() if one.parent == os.getpid()]:
        ids = scan.uids_of(root.pid)
        if root.pid not in ground.children and ids is not None and not uids & set(ids[1]):
            for pid in scan.below((root.pid,), table):
                send(table[pid], signal.SIGKILL)


def end_strays_for_ever(ground: Ground) -> Step[None]:
    """Do so every few seconds, and see to it that nobody else can lease this rig's users."""
    while True:
        yield Until((), time.monotonic() + _STRAYS_S)
        end_strays(ground)
        hold_all_leases(ground)
