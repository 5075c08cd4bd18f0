"""A slot's work folder and stage copies: made, filled, read out and removed.

Only empty folders are ever handed to a user; whatever is in them is written and removed
by forks with that user's identity, relative to descriptors. Source: isolation, 4.1.
"""

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from .fork import NO_ROOM, Duty, Garb, finished, fork, trouble
from .ground import Ground, Slot
from .landlock import READ, Ruleset
from .loop import Step
from .outputs import Order, collect
from .place import place
from .stage import Reply
from .tree import FOLDER, empty
from .vocabulary import Fields, RefusedError

_NAME_BYTES: Final = 8
_COLLECT_S: Final = 600.0
_SWEEP_S: Final = 120.0


def make_folder(ground: Ground, fields: Fields) -> Reply:
    """Make a slot's work folder, or one more stage copy for it; both are empty.

    Raises:
        RefusedError: the slot has a work folder already, or the kind is unknown.
    """
    slot = ground.slot(fields["slot"])
    if fields["kind"] not in {"work", "copy"}:
        raise RefusedError(f"a folder is work or copy, not {fields['kind']!r}")
    if fields["kind"] == "work":
        if slot.folder is not None:
            raise RefusedError(f"slot {slot.name} has the work folder {slot.folder} already")
        slot.folder, slot.folder_fd = _made(ground, slot, copy=False)
        return {"path": slot.folder}, []
    path, fd = _made(ground, slot, copy=True)
    os.close(fd)
    name = path.rpartition("/")[2]
    slot.copies[name] = path
    return {"path": path, "name": name}, []


def _made(ground: Ground, slot: Slot, *, copy: bool) -> tuple[str, int]:
    """Make an empty folder 0700: the slot's own, or the harness's with the slot's group."""
    path = f"{ground.stage_root}/{os.urandom(_NAME_BYTES).hex()}"
    os.mkdir(path, 0o700)
    fd = os.open(path, FOLDER)
    if slot.identity is not None:
        harness = ground.level.harness
        owner = (harness.uid if harness else 0) if copy else slot.identity.uid
        os.fchown(fd, owner, slot.identity.gid)
    return path, fd


def _idle(ground: Ground, name: str) -> Slot:
    """Return a slot that has a work folder and in which nothing runs."""
    slot = ground.slot(name)
    if slot.folder is None:
        raise RefusedError(f"slot {name} has no work folder")
    if slot.busy:
        raise RefusedError(f"slot {name} is busy: a stage or a request of its own goes on in it")
    return slot


@dataclass(frozen=True)
class Errand:
    """What a fork is sent to do in a slot, and how long it may take, s."""

    word: str
    duty: Duty
    limit_s: float


_PLACE: Final = Errand("place", place, 600.0)


def _done(ground: Ground, slot: Slot, errand: Errand, fds: list[int], garb: Garb) -> Step[bytes]:
    """Let a fork do its errand while the slot is busy, and return what it said.

    Raises:
        RefusedError: it failed, or took too long.
    """
    slot.busy = True
    try:
        if not slot.in_block:
            yield from ground.timing.passed()
        one = ground.adopt(fork(errand.duty, fds, garb))
        in_time = yield from finished(one, time.monotonic() + errand.limit_s)
        ground.children.discard(one.pid)
    finally:
        slot.busy = False
    if not in_time:
        raise RefusedError(f"{errand.word} in {slot.name} took over {errand.limit_s:.0f} s")
    problem = trouble(one)
    if problem is not None:
        full = problem in map(os.strerror, NO_ROOM)
        remedy = f": make room in {ground.stage_root}" if full else ""
        raise RefusedError(f"{errand.word} in {slot.name}: {problem}{remedy}")
    return one.said


def place_entries(ground: Ground, fields: Fields, fds: list[int]) -> Step[Reply]:
    """Unpack what comes through the pipe that lies beside the request."""
    slot = _idle(ground, fields["slot"])
    pipe = _the_descriptor(fds, "a pipe to read entries from")
    said = yield from _done(ground, slot, _PLACE, [slot.folder_fd, pipe], ground.garb(slot))
    return {"entries": int(said)}, []


def collect_outputs(ground: Ground, fields: Fields, fds: list[int]) -> Step[Reply]:
    """Copy outputs into the folder that lies beside the request; the report is a memory file."""
    slot = _idle(ground, fields["slot"])
    target = _the_descriptor(fds, "a folder to collect into")
    report = os.memfd_create("report")
    order = Order(paths=fields["paths"], owner=slot.uid, **fields["limits"])
    rules = Ruleset(ground.level.landlock, files=bool(ground.level.landlock), network=False)
    rules.allow_in(slot.folder_fd, READ)
    rules.allow_in(target)
    garb = replace(ground.garb(None), rules=rules)
    try:
        errand = Errand("collect", partial(collect, order), _COLLECT_S)
        yield from _done(ground, slot, errand, [slot.folder_fd, target, report], garb)
    except RefusedError:
        os.close(report)
        raise
    finally:
        rules.close()
    return {}, [report]


def _the_descriptor(fds: list[int], what: str) -> int:
    if len(fds) != 1:
        raise RefusedError(f"the request needs one descriptor beside it: {what}")
    return fds[0]


def sweep(ground: Ground, fields: Fields) -> Step[Reply]:
    """Empty and remove a stage copy, or the work folder with what else the slot has left."""
    if fields["copy"] is not None:
        return (yield from _sweep_copy(ground, fields["slot"], fields["copy"]))
    slot = _idle(ground, fields["slot"])
    garb = ground.garb(slot)
    yield from _done(ground, slot, Errand("sweep", empty_it, _SWEEP_S), [slot.folder_fd], garb)
    os.close(slot.folder_fd)
    path, slot.folder, slot.folder_fd = slot.folder, None, -1
    _remove_top(path or "")
    return {}, []


def _sweep_copy(ground: Ground, name: str, copy: str) -> Step[Reply]:
    slot = ground.slot(name)
    path = slot.copies.pop(copy, None)
    if path is None:
        raise RefusedError(f"slot {name} has no stage copy {copy!r}")
    fd = os.open(path, FOLDER)
    garb = Garb(ground.level.harness, 0, ground.quiet_cpus)
    try:
        one = ground.adopt(fork(empty_it, [fd], garb))
        yield from finished(one, time.monotonic() + _SWEEP_S)
        ground.children.discard(one.pid)
    finally:
        os.close(fd)
    _remove_top(path)
    return {}, []


def clear_slots(ground: Ground) -> Step[None]:
    """Sweep what a harness that is gone has left in every slot; who can't is quarantined."""
    for slot in ground.slots.values():
        for copy in list(slot.copies):
            try:
                yield from _sweep_copy(ground, slot.name, copy)
            except (RefusedError, OSError) as error:
                sys.stderr.write(f"thermite spawner: {error}\n")
        if slot.folder is not None and slot.quarantined is None:
            try:
                yield from sweep(ground, {"slot": slot.name, "copy": None})
            except (RefusedError, OSError) as error:
                slot.quarantined = str(error)


def empty_it(fds: Sequence[int], say: Callable[[bytes], None]) -> None:
    """Empty the one folder that was given."""
    say(str(empty(fds[0])).encode())


def _remove_top(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError as error:
        raise RefusedError(f"{path} could not be removed: {error.strerror}") from None
