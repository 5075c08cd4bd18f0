"""What a stage holds in memory: Kit manifest, Limits; isolation, finding 9 and row 11.

The summed resident memory of its processes, and what they keep beside it in objects that no
process has to map: files in /dev/shm, SysV segments, semaphores and queues. Where a stage has no
user of its own none of them can be made.
"""

import contextlib
import os
from typing import Final

from . import scan
from .weighing import OverError, owned_bytes

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_SHM: Final = "/dev/shm"  # noqa: S108 - looked at


def shared_bytes(uid: int, most: int) -> int:
    """Return what a uid's files in /dev/shm and its SysV segments take up, bytes.

    most: where it is clear that they take up more, they are not counted to their end.
    """
    try:
        return owned_bytes(_SHM, uid, most, in_memory=True) + scan.segment_bytes(uid)
    except OverError:
        return most + 1


class Memory:
    """The summed resident memory of a stage's processes, by kept statm descriptors."""

    def __init__(
        self, uid: int | None, main: int, spawner: int, init: int | None = None, *, most: int
    ) -> None:
        """Sample a uid's processes; where uid is None, the trees below `main` and `init`.

        most: the limit, bytes.
        """
        self._most = most
        self._uid, self._main, self._spawner, self._init = uid, main, spawner, init
        self._statm: dict[int, int] = {}
        self._once_below: set[int] = set()

    def held_bytes(self) -> int:
        """Return what the stage holds now, bytes: resident memory, and shared objects beside it."""
        members = self._of_uid() if self._uid is not None else self._of_tree()
        for pid in self._statm.keys() - members:
            os.close(self._statm.pop(pid))
        resident = sum(self._rss(pid) for pid in members)
        shared = 0 if self._uid is None else shared_bytes(self._uid, self._most + resident)
        if shared:  # what of it is mapped stands in the resident memory already
            shared = max(0, shared - sum(scan.resident_shared(pid) for pid in members))
        queued = 0 if self._uid is None else scan.queue_bytes(self._uid)
        return resident + shared + queued

    def has_strayed(self, cpus: frozenset[int]) -> bool:
        """Return whether a process that the last sample met has given itself other CPUs."""
        return any(_is_elsewhere(pid, cpus) and self._is_of_stage(pid) for pid in self._statm)

    def _is_of_stage(self, pid: int) -> bool:
        """Tell a stage's process, which has a session of its own, from the spawner's forks."""
        one, own = scan.seen(pid), scan.seen(self._spawner)
        if one is None or own is None:
            return False
        return one.state not in "ZX" and one.session != own.session

    def _of_uid(self) -> set[int]:
        """Return the processes of the uid; the owner of /proc/<pid> is the effective uid."""
        found = set()
        for name in os.listdir("/proc"):
            if name.isdigit():
                try:
                    if os.stat(f"/proc/{name}").st_uid == self._uid:
                        found.add(int(name))
                except FileNotFoundError:
                    continue
        return found

    def _of_tree(self) -> set[int]:
        """Return the tree below main, what was once seen in it, and its session's orphans."""
        table = scan.all_seen()
        if self._init is not None:
            return (scan.below(self._main, table) | scan.below(self._init, table)) - {self._init}
        orphans = {
            one.pid
            for one in table.values()
            if one.parent == self._spawner
            and (one.pid in self._once_below or one.session == self._main)
        }
        found: set[int] = set()
        for root in (self._main, *orphans):
            found |= scan.below(root, table)
        self._once_below |= found
        return found

    def _rss(self, pid: int) -> int:
        try:
            if pid not in self._statm:
                self._statm[pid] = os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)
            size, pages, *_ = os.pread(self._statm[pid], 256, 0).split()
            if size == b"0":  # its first thread has left, and what the others hold is theirs
                pages = _pages_of_others(pid)
            return int(pages) * _PAGE
        except (OSError, ValueError):
            return 0


def _pages_of_others(pid: int) -> bytes:
    """Return how many pages the threads of a process hold together; they share them all."""
    for folder in scan.threads_in(pid):
        with contextlib.suppress(OSError), open(f"{folder}/statm", "rb") as file:
            size, pages, *_ = file.read().split()
            if size != b"0":
                return pages
    return b"0"


def _is_elsewhere(pid: int, cpus: frozenset[int]) -> bool:
    """Return whether a thread of a process may run on other CPUs than these."""
    for folder in scan.threads_in(pid):
        with contextlib.suppress(ProcessLookupError):
            if os.sched_getaffinity(int(os.path.basename(folder))) != cpus:
                return True
    return False
