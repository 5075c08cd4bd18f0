"""Files in memory without a name: memfds, and files of a tmpfs whose last name is gone.

Nobody has to map one, so no sum of resident memory has it in it. Which there are is told by the
descriptors and mappings of the processes that hold them, and how much each takes by its blocks.
A file on its way through a unix socket is in neither, nor does a process that is closed to whoever
looks tell of any: a look that met these was not whole. Nothing is opened but lists of /proc, and
no process is stopped. That a process has one table of descriptors for all its threads is the
filter's doing (`seccomp`). Source: isolation, finding 9 and row 11.
"""

import contextlib
import os
import stat
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from . import scan

_SECTOR: Final = 512
"""Unit of st_blocks (stat(2))."""
_LONGEST_S: Final = 0.5
"""A look ends here (our figure): an attendant has more to do, and a stage may hold millions."""
_MOST_INFO: Final = 4096
_IN_FLIGHT: Final = b"\nscm_fds: "
"""How many files wait in a unix socket (net/unix/af_unix.c, since Linux 5.6)."""
_DELETED: Final = b" (deleted)\n"
_SEGMENT: Final = b"/SYSV"
_GONE: Final = (FileNotFoundError, ProcessLookupError)


@dataclass
class Found:
    """What a look has met, bytes; is_whole: there was nothing that it could not weigh."""

    taken: int = 0
    is_whole: bool = True


class _EnoughError(Exception):
    """There is more than may be, or no time to look on."""


def most_shared() -> int:
    """Return what all shared memory of the machine takes up, bytes, or more.

    What is swapped out stands in it: it may have been shared.
    """
    with open("/proc/meminfo", "rb") as file:
        rows = dict(line.split(b":", 1) for line in file)
    here, swap, left = (
        int(rows[name].split()[0]) for name in (b"Shmem", b"SwapTotal", b"SwapFree")
    )
    return (here + swap - left) * 1024


class Nameless:
    """Looks at what the processes of one stage hold."""

    def __init__(self, uid: int | None) -> None:
        """uid: whose files count; None: anybody's, where all have one user."""
        self._uid = uid
        self.devices = _devices_in_memory()

    def look(self, pids: Collection[int], most: int) -> Found:
        """Return what these processes hold; where that is over `most`, not to its end."""
        one = _Look(self, most)
        with contextlib.suppress(_EnoughError):
            for pid in pids:
                one.take(pid)
        return one.found

    def weight(self, status: os.stat_result) -> int:
        """Return what a file takes up where it is one of those, bytes; else 0."""
        if status.st_nlink or not stat.S_ISREG(status.st_mode):
            return 0
        if status.st_dev not in self.devices or self._uid not in {None, status.st_uid}:
            return 0
        return status.st_blocks * _SECTOR


class _Look:
    """One look: a file counts once, whoever holds it."""

    def __init__(self, of: Nameless, most: int) -> None:
        self.found = Found()
        self._of, self._most = of, most
        self._known: set[tuple[int, int]] = set()
        self._end = time.monotonic() + _LONGEST_S

    def take(self, pid: int) -> None:
        """Look at one process.

        Raises:
            _EnoughError: there is no need, or no time, to look on.
        """
        folder = f"/proc/{pid}"
        try:
            folder, names = _holder(pid)
            for name in names:
                self._take_descriptor(folder, name)
            self._take_mappings(folder)
        except _GONE:
            pass
        except PermissionError:  # so it is with one that has ended, which holds nothing
            self.found.is_whole &= not scan.is_alive(pid)
        # A thread that left meanwhile showed only some of what others of its process still hold.
        self.found.is_whole &= not (scan.has_left(folder) and scan.is_alive(pid))

    def _take_descriptor(self, folder: str, name: str) -> None:
        self._look_at_clock()
        try:
            status = os.stat(f"{folder}/fd/{name}")
            self._add(status)
            if stat.S_ISSOCK(status.st_mode) and _has_in_flight(f"{folder}/fdinfo/{name}"):
                self.found.is_whole = False
        except _GONE:
            return

    def _take_mappings(self, folder: str) -> None:
        """Look at what is mapped, and has no descriptor any more."""
        with open(f"{folder}/maps", "rb") as lines:
            for line in lines:
                self._look_at_clock()
                if not line.endswith(_DELETED):
                    continue
                span, _, _, device, inode, name = line.split(None, 5)
                major, minor = (int(part, 16) for part in device.split(b":"))
                file = os.makedev(major, minor), int(inode)
                if file[0] not in self._of.devices or file in self._known:
                    continue
                if not name.startswith(_SEGMENT):  # counted by its own table
                    self._take_mapping(f"{folder}/map_files/{_plain(span)}")

    def _take_mapping(self, link: str) -> None:
        try:
            self._add(os.stat(link))
        except _GONE:  # it is mapped no more, or its process has lost its first thread
            self.found.is_whole &= "/task/" not in link

    def _add(self, status: os.stat_result) -> None:
        key = (status.st_dev, status.st_ino)
        if key not in self._known and status.st_dev in self._of.devices:
            self._known.add(key)
            self.found.taken += self._of.weight(status)
        if self.found.taken > self._most:
            raise _EnoughError

    def _look_at_clock(self) -> None:
        if time.monotonic() > self._end:
            self.found.is_whole = False
            raise _EnoughError


def _holder(pid: int) -> tuple[str, list[str]]:
    """Return where a process's descriptors are told, and their names.

    Where its first thread has left, they are those of another; all have the same.

    Raises:
        OSError: it is gone, or closed.
    """
    first = f"/proc/{pid}"
    try:
        names = os.listdir(f"{first}/fd")
        if names:
            return first, names
    except PermissionError:
        names = None
    for folder in scan.threads_again(pid):
        with contextlib.suppress(PermissionError, *_GONE):
            others = os.listdir(f"{folder}/fd")
            if others:
                return folder, others
    if names is None:
        raise PermissionError(f"{first} is closed")
    return first, names


def _has_in_flight(path: str) -> bool:
    """Return whether files wait in a socket to be received."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _, found, count = os.read(fd, _MOST_INFO).partition(_IN_FLIGHT)
    except OSError:
        return False
    finally:
        os.close(fd)
    return bool(found) and not count.startswith(b"0\n")


def _plain(span: bytes) -> str:
    """Return a range of addresses as map_files names it, without leading zeros."""
    return "-".join(f"{int(end, 16):x}" for end in span.split(b"-"))


def _devices_in_memory() -> frozenset[int]:
    """Return the numbers of the filesystem that memfds are in, and of every tmpfs in sight."""
    probe = os.memfd_create("probe", os.MFD_CLOEXEC)
    devices = {os.fstat(probe).st_dev}
    os.close(probe)
    return frozenset(devices | set(_mounted()))


def _mounted() -> Iterator[int]:
    with open("/proc/self/mountinfo", "rb") as lines:
        for line in lines:
            place, _, what = line.partition(b" - ")
            if what.startswith(b"tmpfs "):
                major, minor = place.split()[2].split(b":")
                yield os.makedev(int(major), int(minor))
