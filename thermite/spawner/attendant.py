"""The fork beside a slot's stages: pumps their output, samples memory and disk.

One for each slot, kept from stage to stage, so that none has to wait for a fork. Source:
Kit manifest, Limits; isolation, 4.1 (attendant) and rows 11 to 14 and 19.
"""

import json
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from .memory import Memory, Unmapped
from .output_log import CHUNK, OutputLog
from .weighing import OverError, owned_bytes, weigh

OVER: Final = {b"m": "memory", b"d": "disk"}
WIDENED: Final = b"a"
"""A process was seen on other CPUs than the stage was given: told, and not ended for it."""
UNSEEN: Final = b"u"
"""Memory was met that can't be weighed, where there may be enough for the limit: told likewise."""
END: Final = b"end"
DONE: Final = b"done"
_MOST_MESSAGE: Final = 4096
_MOST_FDS: Final = 8

_MEMORY_EVERY_S: Final = 0.1
_UNMAPPED_EVERY_S: Final = 0.4
"""So that with its own length and a busy machine's delay it is told within a second."""
_UNMAPPED_REST: Final = 50
"""A look at all descriptors is followed by so many times its own length: at most 2 % of a core,
beside the 3 % that 500 processes take already (4.4)."""
_UNMAPPED_MOST_S: Final = 2.0
"""But never by more (our figure): a stage that makes looks long shall not be left alone for it."""
_DISK_EVERY_S: Final = 0.5
_FLOOR_EVERY_S: Final = 0.05
"""A call of two microseconds, while a disk can be filled in tens of milliseconds."""
_SHARED_DISK: Final = ("/tmp", "/var/tmp")  # noqa: S108 - looked at
_DISK_REST: Final = 10
"""A walk is followed by this many times its own length: at most 9.1 % of a core, so that with all
else that an attendant does it stays within the 10 % of 4.4 (16 CPUs, after 9 times: 10.7 %)."""
_MOST_OUTPUT: Final = 1 << 30
_FREE_FLOOR: Final = 256 << 20
_MIB: Final = 1 << 20


@dataclass(frozen=True)
class Watch:
    """What to watch: where uid is None, the tree below `main`.

    cpus: where a timed run may be; None where that does not matter;
    init: process 1 of the stage's own pid namespace, which has its orphans and is not its;
    has_log: the last descriptor beside it is a file for the output as it comes.
    """

    uid: int | None
    main: int
    spawner: int
    rss_mib: int | None
    disk_mib: int | None
    keep_bytes: int
    cpus: list[int] | None = None
    init: int | None = None
    has_log: bool = False


def attend_for_ever(fds: Sequence[int], _say: Callable[[bytes], None]) -> None:
    """Serve one slot: a stage after the other, as the line from the spawner says.

    A message holds a watch, with the descriptors beside it: the folder, then for each
    stream its pipe and the memory file for its tail, a log last. `END` ends that stage's job,
    `DONE` answers it; between them a letter says that a limit was crossed.
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
    log = OutputLog(fds[-1]) if watch.has_log else None
    streams = fds[1:-1] if watch.has_log else fds[1:]
    tails = [
        Tail(pipe, file, watch.keep_bytes, log)
        for pipe, file in zip(streams[::2], streams[1::2], strict=True)
    ]
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
        letter = one.take()
        if letter in OVER:
            _say_once(line, letter, samplers)
            return
        if letter:
            line.send(letter)
            if letter == WIDENED:
                samplers.remove(one)


def _say_once(line: socket.socket, letter: bytes, samplers: "list[Sampler]") -> None:
    line.send(letter)
    samplers.clear()


class Tail:
    """The end of one output stream; log: where it is kept as it comes."""

    def __init__(self, pipe: int, file: int, keep: int, log: OutputLog | None = None) -> None:
        self.pipe, self._file, self._keep, self._log = pipe, file, keep, log
        self._kept = b""
        self.total = 0

    def pump(self, most_reads: int | None) -> bool:
        """Read what is there; false at the stream's end."""
        while most_reads is None or most_reads > 0:
            try:
                chunk = os.read(self.pipe, CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self.total += len(chunk)
            self._kept = (self._kept + chunk)[-self._keep :] if self._keep else b""
            if self._log is not None:
                self._log.add(chunk)
            most_reads = None if most_reads is None else most_reads - 1
        return True

    def write(self) -> None:
        """Write the tail into its memory file."""
        view = memoryview(self._kept)
        while view:
            view = view[os.write(self._file, view) :]


class Sampler:
    """One measured quantity with the time of its next sample."""

    cost: Callable[[], float] = time.monotonic
    """What its own length is measured by, s; a disk is kept busy by one that waits for it, too."""

    def __init__(self, letter: bytes, every_s: float, over: Callable[[], bool], rest: int) -> None:
        self._letter, self._every_s, self._over, self._rest = letter, every_s, over, rest
        self.due = time.monotonic() + every_s

    def take(self) -> bytes:
        """Take a sample; return the letter for what it found, nothing where all is well."""
        began = type(self).cost()
        over = self._over()
        took = type(self).cost() - began
        self.due = time.monotonic() + max(self._every_s, self._rest * took)
        return self._letter if over else b""


class Doubt(Sampler):
    """Says at most once that there is memory which it can't see."""

    cost = time.process_time

    def __init__(self, unmapped: Unmapped) -> None:
        super().__init__(b"m", _UNMAPPED_EVERY_S, unmapped.is_over, _UNMAPPED_REST)
        self._unmapped, self._is_told = unmapped, False

    def take(self) -> bytes:
        """Take a sample; return the letter for what it found, nothing where all is well."""
        letter = super().take()
        self.due = min(self.due, time.monotonic() + _UNMAPPED_MOST_S)
        if letter or self._is_told or not self._unmapped.is_unseen:
            return letter
        self._is_told = True
        return UNSEEN


def _samplers(watch: Watch, folder: int) -> list[Sampler]:
    samplers = []
    if watch.rss_mib is not None:
        limit = watch.rss_mib * _MIB
        memory = Memory(watch.uid, watch.main, watch.spawner, watch.init, most=limit)
        samplers.append(Sampler(b"m", _MEMORY_EVERY_S, lambda: memory.held_bytes() > limit, 4))
        samplers.append(Doubt(Unmapped(memory, watch.uid, limit)))
        if watch.cpus is not None:
            given = frozenset(watch.cpus)
            strayed = partial(memory.has_strayed, given)
            samplers.append(Sampler(WIDENED, _MEMORY_EVERY_S, strayed, 4))
    if watch.disk_mib is not None:
        shares = watch.uid is not None and watch.init is None
        disk = Disk(folder, watch.disk_mib * _MIB, watch.uid if shares else None)
        samplers.append(Sampler(b"d", _DISK_EVERY_S, disk.over, _DISK_REST))
        samplers.append(Sampler(b"d", _FLOOR_EVERY_S, disk.is_floor_reached, _DISK_REST))
    return samplers


class Disk:
    """What the work folder takes up, and what is left beside it."""

    def __init__(self, folder: int, limit: int, sharer: int | None) -> None:
        """Watch a folder; sharer: a user whose files in everybody's folders count, too."""
        self._folder, self._limit, self._sharer = folder, limit, sharer
        self._floor = min(_FREE_FLOOR, self._free() // 2)

    def _free(self) -> int:
        room = os.fstatvfs(self._folder)
        return room.f_bavail * room.f_frsize

    def is_floor_reached(self) -> bool:
        """Return whether the free space is less than may be left; files without a name count."""
        return self._free() < self._floor

    def over(self) -> bool:
        """Return whether bytes, entries or levels are beyond the limit."""
        try:
            found = weigh(self._folder, self._limit)
            if self._sharer is not None:
                for top in _SHARED_DISK:
                    found += owned_bytes(top, self._sharer, self._limit - found)
        except OverError:
            return True
        return found > self._limit
