"""The folders that anybody may write in: who owns what there, and which of them have changed."""

import os
import stat
import time
from collections import deque
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

TOPS: Final = {"/tmp": 12, "/var/tmp": 12, "/dev/shm": 12, "/run": 4, "/var": 3, "/dev": 2}  # noqa: S108 - looked at
"""Where shared folders are looked for, and how many levels down."""
_MOST_FOLDERS: Final = 10_000

_SETTLED_NS: Final = 50_000_000
"""A folder's time moves with the kernel's tick: one so young may have changed once more."""
_LOOK_AROUND_S: Final = 60.0


class SharedFolders:
    """The shared folders that are known, and their times when each was last looked at for a user.

    For a user, since what one has left is nothing to who looks for another's: a folder that has
    not changed since the end of somebody else's stage may have since the end of one's own last.
    """

    def __init__(self) -> None:
        self._known: set[str] = set()
        self._looks: dict[int, dict[str, tuple[int, int]]] = {}
        self._next_look = 0.0

    @property
    def is_look_due(self) -> bool:
        """Whether the whole machine should be searched for such folders again."""
        return time.monotonic() >= self._next_look

    @property
    def known(self) -> Collection[str]:
        """The paths that are known."""
        return self._known

    def note(self, uid: int, paths: Iterable[str], *, looked_around: bool) -> None:
        """Take in folders that have just been looked at for a user, of whom nobody lives."""
        now = time.time_ns()
        looks = {path: (_changed(path), now) for path in paths}
        if looked_around:
            self._known.clear()
            self._looks[uid] = looks
            self._next_look = time.monotonic() + _LOOK_AROUND_S
        else:
            self._looks.setdefault(uid, {}).update(looks)
        self._known |= looks.keys()

    def moved(self, uid: int) -> list[str]:
        """Return those that may have changed since they were looked at for this user."""
        looks = self._looks.get(uid, {})
        return [path for path in self._known if not _is_as_it_was(path, looks.get(path))]


def _is_as_it_was(path: str, look: tuple[int, int] | None) -> bool:
    if look is None:
        return False
    moment, noted = look
    return _changed(path) == moment and noted - moment >= _SETTLED_NS


def _changed(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0


class Look:
    """One look at the folders that users may read, the upper ones first.

    Yields each with its mode and the names in it that one of `uids` owns, and the owner. What
    they own is not gone into, nor what this process may not read; root looks where they could.
    """

    def __init__(self, uids: Container[int], folders: Sequence[str] | None = None) -> None:
        """`folders`: these and the ones directly in them; None: wherever there may be one."""
        everywhere = {os.path.realpath(top): levels for top, levels in TOPS.items()}
        start = everywhere.items() if folders is None else ((path, 1) for path in folders)
        self._uids = uids
        self._queue = deque(start)

    @property
    def is_whole(self) -> bool:
        """Whether it is at its end and has left nothing out."""
        return not self._queue

    def __iter__(self) -> Iterator[tuple[str, int, Mapping[str, int]]]:
        seen: set[tuple[int, int]] = set()
        while self._queue and len(seen) < _MOST_FOLDERS:
            path, levels = self._queue.popleft()
            try:
                found = os.lstat(path)
                if (found.st_dev, found.st_ino) in seen or not self._is_open(path, found):
                    continue
                seen.add((found.st_dev, found.st_ino))
                with os.scandir(path) as listing:
                    entries = [(one.name, one.stat(follow_symlinks=False)) for one in listing]
            except OSError:
                continue
            owners = {name: one.st_uid for name, one in entries if one.st_uid in self._uids}
            yield path, found.st_mode, owners
            if levels:
                self._queue.extend(
                    (f"{path.rstrip('/')}/{name}", levels - 1)
                    for name, one in entries
                    if stat.S_ISDIR(one.st_mode) and name not in owners
                )

    def _is_open(self, path: str, found: os.stat_result) -> bool:
        everybody = stat.S_IROTH | stat.S_IXOTH
        if os.getuid() == 0 and found.st_mode & everybody != everybody:
            return found.st_gid in self._uids
        return os.access(path, os.R_OK | os.X_OK)
