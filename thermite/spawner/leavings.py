"""What a stage leaves outside its work folder: files in shared folders, SysV segments.

The shared folders are those that anybody may write in. All are looked for at the first stage
and then once a minute; between, those that are known and have changed are looked into, with
the folders directly in them. Nothing is removed with privileges: a fork with the slot's own
uid does it. POSIX queues can't be made (RLIMIT_MSGQUEUE 0) and keyrings are refused, so
neither is left. Source: isolation, finding 12 and row 24.
"""

import contextlib
import ctypes
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Final

from .fork import finished, fork, trouble
from .ground import Ground, Slot
from .loop import Step
from .shared import Look
from .tree import empty, open_folder
from .vocabulary import RefusedError

_SWEEP_S: Final = 60.0
_SHORT_LOOK: Final = 512
"""Entries of a folder that are looked at without a fork: about half a millisecond."""
_WHOLE: Final = "whole"
_GAP: Final = "leftovers"
_IPC_RMID: Final = 0
_SYSV: Final = {"shm": "shmid", "sem": "semid", "msg": "msqid"}
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def sweep_leavings(ground: Ground, slot: Slot) -> Step[int]:
    """Remove what a slot's user has left and return how many things that were.

    Until that has been done the slot is noted as unswept, and its next stage waits for it.

    Raises:
        RefusedError, OSError: it could not be looked for, or took too long.
    """
    if slot.identity is None:
        return 0
    uid = slot.identity.uid
    slot.unswept = True
    around = ground.shared.is_look_due
    moved = ground.shared.moved(uid)
    if not around:
        clean = [path for path in moved if _is_clean(uid, path, ground.shared.known)]
        ground.shared.note(uid, clean, looked_around=False)
        moved = [path for path in moved if path not in clean]
    if not around and not moved and not any(_segments(uid)):
        slot.unswept = False
        return 0
    duty = partial(_sweep, uid, None if around else moved)
    one = ground.adopt(fork(duty, [], ground.garb(slot)))
    in_time = yield from finished(one, time.monotonic() + _SWEEP_S)
    ground.children.discard(one.pid)
    problem = trouble(one)
    if not in_time or problem is not None:
        raise RefusedError(f"isolation: what {slot.word} left could not be swept: {problem}")
    count, whole, *folders = one.said.decode("utf-8", "surrogateescape").split("\0")
    ground.shared.note(uid, folders, looked_around=around)
    if whole != _WHOLE and _GAP not in ground.level.gaps:
        ground.level.gaps.append(_GAP)  # more folders than can be looked into at every stage
    slot.unswept = False
    return int(count)


def _is_clean(uid: int, path: str, known: Collection[str]) -> bool:
    """Return whether a short look says that nothing of `uid` lies in a shared folder.

    It reads names and owners and touches nothing: most changes there are somebody else's, and
    a fork for each would cost every stage more than all the rest of its end.
    """
    try:
        with os.scandir(path) as listing:
            for count, entry in enumerate(listing):
                try:
                    found = entry.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # somebody has just removed it
                is_open = stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_IWOTH
                is_new = is_open and f"{path.rstrip('/')}/{entry.name}" not in known
                if found.st_uid == uid or is_new or count >= _SHORT_LOOK:
                    return False
    except OSError:
        return False
    return True


def _sweep(
    uid: int, moved: Sequence[str] | None, _fds: Sequence[int], say: Callable[[bytes], None]
) -> None:
    """Remove everything of `uid` in shared folders; say the count, then the folders.

    moved: the folders that have changed; None: look for shared folders everywhere.
    """
    gone = sum(_remove_segment(kind, number) for kind, number in _segments(uid))
    folders: list[str] = []
    look = Look({uid}, moved)
    for path, mode, owned in look:
        # By its mode, and not by what this process may do there: a rig keeps its ledger in a
        # folder of its harness's group.
        if mode & stat.S_IWOTH and os.access(path, os.W_OK):
            gone += _remove_owned(path, list(owned))
            folders.append(path)
    text = "\0".join([str(gone), _WHOLE if look.is_whole else "more", *folders])
    say(text.encode("utf-8", "surrogateescape"))


def _remove_owned(path: str, names: Sequence[str]) -> int:
    """Remove these names of a folder, with everything below them."""
    gone = 0
    if not names:
        return 0
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0
    for name in names:
        with contextlib.suppress(OSError):
            gone += _remove(folder, name)
    os.close(folder)
    return gone


def _remove(folder: int, name: str) -> int:
    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=folder)
        return 1
    os.chmod(name, stat.S_IRWXU, dir_fd=folder)
    inner = open_folder(name, at=folder)
    gone = empty(inner)
    os.close(inner)
    os.rmdir(name, dir_fd=folder)
    return gone + 1


def _segments(uid: int) -> Iterator[tuple[str, int]]:
    """Return the SysV objects that `uid` made or owns: kind and id."""
    for kind, column in _SYSV.items():
        try:
            with open(f"/proc/sysvipc/{kind}", encoding="ascii") as table:
                head, *rows = (line.split() for line in table)
        except OSError:
            continue
        at, owner, maker = head.index(column), head.index("uid"), head.index("cuid")
        for row in rows:
            if str(uid) in {row[owner], row[maker]}:
                yield kind, int(row[at])


def _remove_segment(kind: str, number: int) -> bool:
    if kind == "shm":
        failed = int(_LIBC.shmctl(number, _IPC_RMID, None))
    elif kind == "sem":
        failed = int(_LIBC.semctl(number, 0, _IPC_RMID))
    else:
        failed = int(_LIBC.msgctl(number, _IPC_RMID, None))
    return failed == 0
