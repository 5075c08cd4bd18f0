"""What a stage holds in memory: Kit manifest, Limits; isolation, finding 9 and row 11.

The summed resident memory of its processes, and what they keep beside it in objects that no
process has to map: files in /dev/shm, SysV segments, semaphores and queues, which can't be made
where a stage has no user of its own, and files without a name, which can.
"""

import contextlib
import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from . import scan
from .descent import Descent
from .nameless import Nameless, most_shared
from .others import Others
from .weighing import OverError, owned_bytes

_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_LINE: Final = 96
"""Seven numbers of pages: more than a statm file has."""
_SHM: Final = "/dev/shm"  # noqa: S108 - looked at


def shared_bytes(uid: int, most: int) -> int:
    """Return what a uid's files in /dev/shm and its SysV segments take up, bytes.

    most: where it is clear that they take up more, they are not counted to their end.
    """
    try:
        return owned_bytes(_SHM, uid, most, in_memory=True) + scan.segment_bytes(uid)
    except OverError:
        return most + 1


@dataclass(frozen=True)
class Held:
    """What a stage held at one sample, bytes.

    mapped: how much of what is shared stands in `resident` already, more where several map it.
    """

    resident: int = 0
    shared: int = 0
    mapped: int = 0
    queued: int = 0

    def total(self, nameless: int = 0) -> int:
        """Return the sum, with what files without a name take up."""
        return self.resident + max(0, self.shared + nameless - self.mapped) + self.queued


class Memory:
    """The summed resident memory of a stage's processes, by kept statm descriptors."""

    def __init__(
        self, uid: int | None, main: int, spawner: int, init: int | None = None, *, most: int
    ) -> None:
        """Sample a uid's processes; where uid is None, the trees below `main` and `init`.

        most: the limit, bytes.
        """
        self._most = most
        self._uid, self._main, self._spawner = uid, main, spawner
        self._descent = Descent(main, spawner, init) if uid is None else None
        self._statm: dict[int, int] = {}
        self._others = Others()
        self.last = Held()

    @property
    def members(self) -> Collection[int]:
        """The processes that the last sample met."""
        return self._statm.keys()

    def held_bytes(self) -> int:
        """Return what the stage holds now, bytes: resident memory, and shared objects beside it."""
        return self.sample().total()

    def sample(self, *, with_mapped: bool = False) -> Held:
        """Look at what the stage holds now.

        with_mapped: how much of it is shared, too, even where nothing shared has a name.
        """
        known = self._statm.keys()
        members = self._of_uid() if self._descent is None else self._descent.members(known)
        for pid in self._statm.keys() - members:
            os.close(self._statm.pop(pid))
        resident = _PAGE * sum(map(self._pages, members))
        shared = 0 if self._uid is None else shared_bytes(self._uid, self._most + resident)
        mapped = sum(map(scan.resident_shared, members)) if shared or with_mapped else 0
        queued = 0 if self._uid is None else scan.queue_bytes(self._uid)
        self.last = Held(resident, shared, mapped, queued)
        return self.last

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
        """Return the processes of the uid; the owner of /proc/<pid> is the effective uid.

        Asked of each once: but for main, which becomes the slot's user before it executes, no
        process changes its ids, and one that is known is read by a descriptor that stays its own.
        """
        numbers = set(scan.pids())
        others = self._others.still(numbers - {self._main})
        found = self._statm.keys() & numbers
        asked = {pid: _owner(pid) for pid in numbers - others - found}
        found |= {pid for pid, owner in asked.items() if owner == self._uid}
        self._others.add(pid for pid, owner in asked.items() if owner not in {None, self._uid})
        return found

    def _pages(self, pid: int) -> int:
        """Return how many pages a process holds, none where it is gone."""
        try:
            statm = self._statm.get(pid)
            if statm is None:
                statm = os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)
                self._statm[pid] = statm
            size, pages, _ = os.pread(statm, _LINE, 0).split(b" ", 2)
            if size == b"0":  # its first thread has left, and what the others hold is theirs
                pages = _pages_of_others(pid)
            return int(pages)
        except (OSError, ValueError) as error:
            if isinstance(error, ProcessLookupError) and pid in self._statm:
                os.close(self._statm.pop(pid))  # who has its number by now is met the next time
            return 0


class Unmapped:
    """What a stage holds in files without a name, looked for only where there can be enough."""

    def __init__(self, memory: Memory, uid: int | None, limit: int) -> None:
        """memory: its samples; uid: whose files count, None: anybody's; limit: bytes."""
        self._memory, self._limit = memory, limit
        self._nameless = Nameless(uid)
        self._was_whole = True
        self.is_unseen = False

    def is_over(self) -> bool:
        """Return whether that takes the stage over its limit; `is_unseen`: nobody can tell.

        All of it is shared memory, of which the machine knows its sum, at next to no cost. What
        moves from one kind of memory to another during a look would be met twice, or with what
        is gone by then: the sample before it and the one after it both count.
        """
        if self._memory.last.total() + most_shared() <= self._limit:
            return False
        before = self._memory.sample(with_mapped=True)
        found = self._nameless.look(tuple(self._memory.members), self._limit + before.mapped)
        held = before.total(found.taken)
        if held > self._limit:
            held = min(held, self._memory.sample(with_mapped=True).total(found.taken))
        # Once may be a file that is just received, or a process on its way to its program.
        self.is_unseen |= not found.is_whole and not self._was_whole
        self._was_whole = found.is_whole
        return held > self._limit


def _owner(pid: int) -> int | None:
    """Return whose a process is, None where it is gone."""
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except FileNotFoundError:
        return None


def _pages_of_others(pid: int) -> bytes:
    """Return how many pages the threads of a process hold together; they share them all."""
    for folder in scan.threads_again(pid):
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
