"""The folders that anybody may write in, and whether one of them has changed."""

import os
import time
from collections.abc import Sequence
from typing import Final

_SETTLED_NS: Final = 50_000_000
"""A folder's time moves with the kernel's tick: one so young may have changed once more."""


class SharedFolders:
    """The folders that a stage could have written in, with their times."""

    def __init__(self) -> None:
        self._times: dict[str, tuple[int, int]] = {}

    def note(self, paths: Sequence[str]) -> None:
        """Take in the folders that the last look has found."""
        now = time.time_ns()
        self._times = {path: (_changed(path), now) for path in paths}

    def have_moved(self) -> bool:
        """Whether any of them may have changed since they were noted."""
        return not self._times or any(
            _changed(path) != moment or noted - moment < _SETTLED_NS
            for path, (moment, noted) in self._times.items()
        )


def _changed(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0
