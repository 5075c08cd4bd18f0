"""The folders that anybody may write in, and which of them have changed."""

import os
import time
from collections.abc import Collection, Iterable
from typing import Final

_SETTLED_NS: Final = 50_000_000
"""A folder's time moves with the kernel's tick: one so young may have changed once more."""
_LOOK_AROUND_S: Final = 60.0


class SharedFolders:
    """The shared folders that are known, each with its time when it was last looked at."""

    def __init__(self) -> None:
        self._times: dict[str, tuple[int, int]] = {}
        self._next_look = 0.0

    @property
    def is_look_due(self) -> bool:
        """Whether the whole machine should be searched for such folders again."""
        return time.monotonic() >= self._next_look

    @property
    def known(self) -> Collection[str]:
        """The paths that are known."""
        return self._times.keys()

    def note(self, paths: Iterable[str], *, looked_around: bool) -> None:
        """Take in folders that a fork has just looked at."""
        now = time.time_ns()
        if looked_around:
            self._times.clear()
            self._next_look = time.monotonic() + _LOOK_AROUND_S
        self._times |= {path: (_changed(path), now) for path in paths}

    def moved(self) -> list[str]:
        """Return those that may have changed since they were looked at."""
        return [
            path
            for path, (moment, noted) in self._times.items()
            if _changed(path) != moment or noted - moment < _SETTLED_NS
        ]


def _changed(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0
