"""The fork beside a slot's stages: pumps their output, samples memory and disk.

One for each slot, kept from stage to stage, so that none has to wait for a fork. Source:
Kit manifest, Limits; isolation, 4.1 (attendant) and rows 11 to 14 and 19.
"""

import errno
import json
import os
import select
import socket
import stat
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from .memory import Memory
from .tree import FOLDER

OVER: Final = {b"m": "memory", b"d": "disk"}
WIDENED: Final = b"a"
"""A process was seen on other CPUs than the stage was given: told, and not ended for it."""
END: Final = b"end"
DONE: Final = b"done"
_MOST_MESSAGE: Final = 4096
_MOST_FDS: Final = 8

_MEMORY_EVERY_S: Final = 0.1
_DISK_EVERY_S: Final = 0.5
_DISK_REST: Final = 9
"""A walk is followed by this many times its own length: at most 10 % of a core (4.4)."""
MOST_ENTRIES: Final = 50_000
MOST_LEVELS: Final = 128
_CHUNK: Final = 1 << 16
_MOST_OUTPUT: Final = 1 << 30
_FREE_FLOOR: Final = 256 << 20
_MIB: Final = 1 << 20
_SECTOR: Final = 512
"""Unit of st_blocks (stat(2))."""


@dataclass(frozen=True)
class Watch:
    """What to watch: where uid is None, the tree below `main`.

    cpus: where a timed run may be; None where that does not matter;
    init: process 1 of the stage's own pid namespace, which has its orphans and is not its.
    """

    uid: int | None
    main: int
    spawner: int
    rss_mib: int | None
    disk_mib: int | None
    keep_bytes: int
    cpus: list[int] | None = None
    init: int | None = None


class OverError(Exception):
    """A folder holds more than it may."""


def attend_for_ever(fds: Sequence[int], _say: Callable[[bytes], None]) -> None:
    """Serve one slot: a stage after the other, as the line from the spawner says.

    A message holds a watch, with the descriptors beside it: the folder, then for each
    stream its pipe and the memory file for its tail. `END` ends that stage's job, `DONE`
    answers it; between them a letter says that a limit was crossed.
    """
    line = socket.socket(fileno=fds[0])
    while True:
        raw, given, _, _ = socket.recv_fds(line, _MOST_MESSAGE, _MOST_FDS)
        if not raw:
            return
        if raw == END:
            continue
        try:
            _attend(Watch(**json.loads(raw)), given, line)
        finally:
            for fd in given:
                os.close(fd)
        line.send(DONE)


def _attend(watch: Watch, fds: Sequence[int], line: socket.socket) -> None:
    tails = [Tail(fds[i], fds[i + 1], watch.keep_bytes) for i in range(1, len(fds), 2)]
    poll = select.poll()
    poll.register(line, select.POLLIN)
    for tail in tails:
        os.set_blocking(tail.pipe, False)
        poll.register(tail.pipe, select.POLLIN)
    samplers = _samplers(watch, fds[0])
    ended = False
    while not ended:
        wait_s = min((one.due for one in samplers), default=time.monotonic() + 1) - time.monotonic()
        for fd, _ in poll.poll(max(0.0, wait_s) * 1000):
            if fd == line.fileno():
                ended = True
                line.recv(_MOST_MESSAGE)
            elif not next(tail for tail in tails if tail.pipe == fd).pump(1):
                poll.unregister(fd)
        if sum(tail.total for tail in tails) > _MOST_OUTPUT:
            _say_once(line, b"d", samplers)
        _sample(line, samplers)
    for tail in tails:
        tail.pump(None)
        tail.write()


def _sample(line: socket.socket, samplers: "list[Sampler]") -> None:
    """Take the samples that are due, and say what they found: a limit ends all sampling."""
    for one in [one for one in samplers if one.due <= time.monotonic()]:
        if not one.crossed():
            continue
        if one.letter != WIDENED:
            _say_once(line, one.letter, samplers)
            return
        line.send(WIDENED)
        samplers.remove(one)


def _say_once(line: socket.socket, letter: bytes, samplers: "list[Sampler]") -> None:
    line.send(letter)
    samplers.clear()


class Tail:
    """The end of one output stream."""

    def __init__(self, pipe: int, file: int, keep: int) -> None:
        self.pipe, self._file, self._keep = pipe, file, keep
        self._kept = b""
        self.total = 0

    def pump(self, most_reads: int | None) -> bool:
        """Read what is there; false at the stream's end."""
        while most_reads is None or most_reads > 0:
            try:
                chunk = os.read(self.pipe, _CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self.total += len(chunk)
            self._kept = (self._kept + chunk)[-self._keep :] if self._keep else b""
            most_reads = None if most_reads is None else most_reads - 1
        return True

    def write(self) -> None:
        """Write the tail into its memory file."""
        view = memoryview(self._kept)
        while view:
            view = view[os.write(self._file, view) :]


class Sampler:
    """One measured quantity with the time of its next sample."""

    def __init__(self, letter: bytes, every_s: float, over: Callable[[], bool], rest: int) -> None:
        self.letter, self._every_s, self._over, self._rest = letter, every_s, over, rest
        self.due = time.monotonic() + every_s

    def crossed(self) -> bool:
        """Take a sample; true when it is over the limit."""
        began = time.monotonic()
        over = self._over()
        now = time.monotonic()
        self.due = now + max(self._every_s, self._rest * (now - began))
        return over


def _samplers(watch: Watch, folder: int) -> list[Sampler]:
    samplers = []
    if watch.rss_mib is not None:
        memory = Memory(watch.uid, watch.main, watch.spawner, watch.init)
        limit = watch.rss_mib * _MIB
        samplers.append(Sampler(b"m", _MEMORY_EVERY_S, lambda: memory.held_bytes() > limit, 4))
        if watch.cpus is not None:
            given = frozenset(watch.cpus)
            strayed = partial(memory.has_strayed, given)
            samplers.append(Sampler(WIDENED, _MEMORY_EVERY_S, strayed, 4))
    if watch.disk_mib is not None:
        disk = Disk(folder, watch.disk_mib * _MIB)
        samplers.append(Sampler(b"d", _DISK_EVERY_S, disk.over, _DISK_REST))
    return samplers


class Disk:
    """What the work folder takes up, and what is left beside it."""

    def __init__(self, folder: int, limit: int) -> None:
        self._folder, self._limit = folder, limit
        self._floor = min(_FREE_FLOOR, self._free() // 2)

    def _free(self) -> int:
        room = os.fstatvfs(self._folder)
        return room.f_bavail * room.f_frsize

    def over(self) -> bool:
        """Return whether bytes, entries, levels or the free space are beyond the limit."""
        if self._free() < self._floor:
            return True
        try:
            weigh(self._folder, self._limit)
        except OverError:
            return True
        return False


def weigh(root: int, limit: int) -> int:
    """Return the allocated bytes below an open folder, each inode counted once.

    Raises:
        OverError: more bytes than `limit`, too many entries, too deep, or it can't be walked.
    """
    total, entries = 0, 0
    seen: set[int] = set()
    stack: list[tuple[int, list[str]]] = [(root, _names(root, MOST_ENTRIES))]
    try:
        while stack:
            here, names = stack[-1]
            if not names:
                stack.pop()
                if here != root:
                    os.close(here)
                continue
            name = names.pop()
            entries += 1
            found = _look(here, name)
            if found is None:
                continue
            total += _blocks(found, seen)
            if total > limit or entries >= MOST_ENTRIES or len(stack) >= MOST_LEVELS:
                raise OverError
            if stat.S_ISDIR(found.st_mode):
                _descend(here, name, stack, MOST_ENTRIES - entries)
    finally:
        for fd, _ in stack:
            if fd != root:
                os.close(fd)
    return total


def _blocks(found: os.stat_result, seen: set[int]) -> int:
    """Return an entry's allocated bytes, 0 for an inode that was counted before."""
    if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
        if found.st_ino in seen:
            return 0
        seen.add(found.st_ino)
    return found.st_blocks * _SECTOR


def _look(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError:
        raise OverError from None


def _descend(here: int, name: str, stack: list[tuple[int, list[str]]], most: int) -> None:
    try:
        fd = os.open(name, FOLDER, dir_fd=here)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno in {errno.ENOTDIR, errno.ELOOP}:
            return
        raise OverError from None
    try:
        names = _names(fd, most)
    except OverError:
        os.close(fd)
        raise
    stack.append((fd, names))


def _names(folder: int, most: int) -> list[str]:
    """Return a folder's names; a listing that passes `most` is not read to its end."""
    names: list[str] = []
    with os.scandir(folder) as listing:
        for entry in listing:
            names.append(entry.name)
            if len(names) > most:
                raise OverError
    return names
