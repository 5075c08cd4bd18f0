"""What /proc says: who lives under a uid, who descends from a process, who stands still.

A process that ends while it is read is not there; every other error is an error. One whose first
thread has left shows as a zombie while its others run: its state here is theirs.
"""

import errno
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_STATUS_BYTES: Final = 4096
_MOST_LEVELS: Final = 1 << 15
"""How far up a folder that has no path any more is followed; some 100 ms."""
_CACHE_LINE: Final = 64
"""A semaphore has one of its own (ipc/sem.c), and a message at least one beside its text."""
_SLAB: Final = 512
"""About what a set or a queue takes up beside what is in it."""
_MOST_LISTS: Final = 20
"""How often threads that hand over to each other are listed: one in two was met at once (ours)."""
_DEAD: Final = "ZX"
_STILL: Final = "Tt"
_RUNS: Final = "R"
_GONE: Final = (FileNotFoundError, ProcessLookupError)


@dataclass(frozen=True)
class Seen:
    """One live process: state letter, parent, session, start in clock ticks since boot."""

    pid: int
    state: str
    parent: int
    session: int
    started: int


def _read(path: str) -> bytes | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except _GONE:
        return None
    try:
        return os.read(fd, _STATUS_BYTES)
    except _GONE:
        return None
    finally:
        os.close(fd)


def pids() -> list[int]:
    """Return every process id."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def last_given() -> int:
    """Return the last process or thread number that the kernel has given out here, 0: it is untold.

    Those of the pid namespace that this process is in.
    """
    words = (_read("/proc/loadavg") or b"").split()
    return int(words[-1]) if words and words[-1].isdigit() else 0


def uids_of(pid: int) -> tuple[str, tuple[int, ...]] | None:
    """Return a process's state letter and its real, effective, saved and fs uid."""
    text = _read(f"/proc/{pid}/status")
    if text is None:
        return None
    state, ids = "?", tuple[int, ...]()
    for line in text.split(b"\n"):
        if line.startswith(b"State:\t"):
            state = chr(line[7])
        elif line.startswith(b"Uid:\t"):
            ids = tuple(int(word) for word in line[5:].split())
        elif line.startswith(b"Threads:\t"):
            return _state_of_all(pid, state, int(line[9:])), ids
    return state, ids


def _state_of_all(pid: int, state: str, threads: int) -> str:
    """Return the state letter of a process: where its first thread has left, of those that run."""
    if state not in _DEAD or threads <= 1:
        return state
    others = [words[0].decode() for words in map(_stat_words, threads_in(pid)) if words]
    alive = [one for one in others if one not in _DEAD]
    if not alive and len(others) < threads:
        return _RUNS  # one has left since, and may have handed over to another
    return next((one for one in alive if one not in _STILL), (alive or [state])[0])


def threads_in(pid: int) -> list[str]:
    """Return the folders of a process's threads in /proc."""
    try:
        return [f"/proc/{pid}/task/{name}" for name in os.listdir(f"/proc/{pid}/task")]
    except _GONE:
        return []


def threads_again(pid: int) -> Iterator[str]:
    """Yield the folders of a process's threads, again and again, to be left at one that answers.

    A thread that leaves while they are listed may have handed over to one that was not.
    """
    for _ in range(_MOST_LISTS):
        listed = threads_in(pid)
        yield from listed
        if len(listed) <= 1:
            return


def _stat_words(folder: str) -> list[bytes]:
    """Return what stands in a stat file behind the name, which may have any byte in it."""
    text = _read(f"{folder}/stat") or b""
    return text[text.rindex(b")") + 2 :].split() if b")" in text else []


def owned(uid: int) -> list[int]:
    """Return the processes with effective uid `uid`, zombies too: four times as fast.

    The owner of /proc/<pid> is the effective uid whatever the process does (the kernel's
    task_dump_owner). All ids of a stage's process are the slot's: it starts with those, and
    without a capability and under no_new_privs it can get no other.
    """
    found = []
    for pid in pids():
        try:
            if os.stat(f"/proc/{pid}").st_uid == uid:
                found.append(pid)
        except _GONE:
            continue
    return found


def living(uid: int, but: int | None = None) -> list[int]:
    """Return the live processes of a slot's uid, but for one; zombies are not live."""
    found = []
    for pid in owned(uid):
        if pid == but:
            continue
        seen = uids_of(pid)
        if seen is not None and uid in seen[1] and seen[0] not in _DEAD:
            found.append(pid)
    return found


def moving(uid: int, but: int | None = None) -> list[int]:
    """Return the live processes of `uid`, but for one, that do not stand still (T or t)."""
    still = []
    for pid in living(uid, but):
        seen = uids_of(pid)
        if seen is not None and seen[0] not in _STILL + _DEAD:
            still.append(pid)
    return still


def holders_of(uid: int) -> list[int]:
    """Return the processes with real or saved uid `uid`, zombies too."""
    found = []
    for pid in pids():
        seen = uids_of(pid)
        if seen is not None and uid in (seen[1][0:1] + seen[1][2:3]):
            found.append(pid)
    return found


def seen(pid: int) -> Seen | None:
    """Return what /proc/<pid>/stat says, None when the process is gone."""
    words = _stat_words(f"/proc/{pid}")
    if not words:
        return None
    return Seen(
        pid=pid,
        state=_state_of_all(pid, words[0].decode(), int(words[17])),
        parent=int(words[1]),
        session=int(words[3]),
        started=int(words[19]),
    )


def is_alive(pid: int) -> bool:
    """Return whether a process has a thread that has not left."""
    one = seen(pid)
    return one is not None and one.state not in _DEAD


def has_left(folder: str) -> bool:
    """Return whether a thread, or a process's first one, by its folder, has left."""
    words = _stat_words(folder)
    return not words or words[0].decode() in _DEAD


def own_children() -> set[int] | None:
    """Return this single-threaded process's direct children, None where /proc can't say.

    A child that ends while the list is read may hide its neighbour: two equal answers, with
    no child gone between, are an answer.
    """
    own = os.getpid()
    lists = [_read(f"/proc/{own}/task/{own}/children") for _ in range(2)]
    if lists[0] is None or lists[0] != lists[1] or len(lists[0]) >= _STATUS_BYTES:
        return None
    return {int(word) for word in lists[0].split()}


def children_now() -> set[int]:
    """Return this process's direct children, zombies too; one that ends meanwhile may miss."""
    told = own_children()
    if told is not None:
        return told
    own = os.getpid()
    return {one.pid for one in all_seen().values() if one.parent == own}


def table_of(numbers: Iterable[int]) -> dict[int, Seen]:
    """Return those of some processes that are there, zombies too."""
    return {pid: one for pid in numbers if (one := seen(pid)) is not None}


def all_seen() -> dict[int, Seen]:
    """Return every process, zombies too."""
    return table_of(pids())


def below(roots: Iterable[int], table: dict[int, Seen]) -> set[int]:
    """Return the live descendants of `roots`, with those of them that are in the table and live."""
    children: dict[int, list[int]] = {}
    for one in table.values():
        children.setdefault(one.parent, []).append(one.pid)
    found: set[int] = set()
    queue = list(roots)
    while queue:
        pid = queue.pop()
        if pid in found:
            continue
        found.add(pid)
        queue.extend(children.get(pid, ()))
    return {pid for pid in found if pid in table and table[pid].state not in _DEAD}


def staged_below(uid: int, folder: str) -> list[int]:
    """Return the live processes of `uid` that look like stages of a rig below `folder`.

    A stage can't shed no_new_privs, which a person's shell does not have; its working folder
    or its HOME lies below the stage root unless it hides that. For level none, where no uid
    tells them from their user's own processes.
    """
    found = []
    for pid in living(uid):
        status = _read(f"/proc/{pid}/status") or b""
        if b"\nNoNewPrivs:\t1\n" in status and _is_at_home_below(pid, folder):
            found.append(pid)
    return found


def _is_at_home_below(pid: int, folder: str) -> bool:
    start = os.fsencode(f"{folder}/")
    try:
        works_there = _works_below(pid, start)
        env = _read(f"/proc/{pid}/environ") or b""
    except (*_GONE, PermissionError):
        return False  # closed to its own user: no stage of ours, whose memory is open to it
    return works_there or any(word.startswith(b"HOME=" + start) for word in env.split(b"\0"))


def _works_below(pid: int, start: bytes) -> bool:
    """Return whether a process's working folder lies below `start`, however deep."""
    link = os.fsencode(f"/proc/{pid}/cwd")
    try:
        return os.readlink(link).startswith(start)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
    return _climbs_to(link, os.stat(start))


def _climbs_to(link: bytes, top: os.stat_result) -> bool:
    """Return whether `top` is above the folder behind `link`, whose path nobody can say.

    Anybody may work that deep, and must neither hide there nor stop a rig from starting.
    """
    here = os.open(link, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for _ in range(_MOST_LEVELS):
            above = os.open("..", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
            before, now = os.fstat(here), os.fstat(above)
            os.close(here)
            here = above
            if os.path.samestat(now, top):
                return True
            if os.path.samestat(now, before):
                return False  # the root is its own parent
        return False
    finally:
        os.close(here)


def resident_shared(pid: int) -> int:
    """Return how much shared memory a process has mapped and resident, bytes."""
    for line in (_read(f"/proc/{pid}/status") or b"").split(b"\n"):
        if line.startswith(b"RssShmem:"):
            return int(line.split()[1]) * 1024
    return 0


def segment_bytes(uid: int) -> int:
    """Return how much of the SysV segments that a uid made or owns is resident, bytes."""
    return sum(int(row["rss"]) for row in _sysv("shm", uid))


def queue_bytes(uid: int) -> int:
    """Return what the kernel holds for a uid's SysV semaphores and message queues, bytes."""
    sets = sum(_SLAB + int(row["nsems"]) * _CACHE_LINE for row in _sysv("sem", uid))
    return sets + sum(
        _SLAB + int(row["cbytes"]) + int(row["qnum"]) * _CACHE_LINE for row in _sysv("msg", uid)
    )


def _sysv(kind: str, uid: int) -> Iterator[dict[str, str]]:
    """Yield the rows of a table of SysV objects that a uid made or owns, by column."""
    try:
        with open(f"/proc/sysvipc/{kind}", encoding="ascii") as table:
            head = table.readline().split()
            for line in table:
                row = dict(zip(head, line.split(), strict=False))
                if str(uid) in {row.get("uid"), row.get("cuid")}:
                    yield row
    except OSError:
        return


def threads_of(uid: int) -> int:
    """Return how many threads the processes of one real uid have."""
    total = 0
    for pid in pids():
        text = _read(f"/proc/{pid}/status")
        if text is None or b"\nUid:\t%d\t" % uid not in text:
            continue
        for line in text.split(b"\n"):
            if line.startswith(b"Threads:"):
                total += int(line.split()[1])
    return total


def all_uids() -> set[int]:
    """Return every uid that a process has in any of its four places."""
    found: set[int] = set()
    for pid in pids():
        one = uids_of(pid)
        if one is not None:
            found.update(one[1])
    return found
