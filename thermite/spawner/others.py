"""Who was no stage's at the last sample: each is asked once, and need not be asked again.

But a number may be another process's by now. Which numbers the kernel has given out since is told
by the last one (proc(5), loadavg): they go round, so that those between are asked anew. And every
second all are, since a container may be told of no such number, or of a wrong one.
"""

from collections.abc import Collection, Iterable
from typing import Final

from . import scan

_ALL_AGAIN: Final = 10
"""Samples after which every process is asked: some second."""


class Others:
    """Numbers of processes that are nobody's of one stage."""

    def __init__(self) -> None:
        self._known: set[int] = set()
        self._last = 0
        self._turn = 0
        self.asks_all = True
        """Whether the sample that runs asks everybody, as the first one does."""

    def still(self, numbers: Collection[int]) -> set[int]:
        """Begin a sample; return those of `numbers` that were others at the last one, and are.

        numbers: every process there is, listed after the last sample.
        """
        last = scan.last_given()
        self.asks_all = self._turn == 0
        self._turn = (self._turn + 1) % _ALL_AGAIN
        if self.asks_all:
            self._known.clear()
        self._known.intersection_update(numbers)
        self._known -= given_out(self._known, self._last, last)
        self._last = last
        return self._known

    def add(self, numbers: Iterable[int]) -> None:
        """Note who has been asked and is no stage's."""
        self._known.update(numbers)


def given_out(numbers: Iterable[int], before: int, last: int) -> set[int]:
    """Return those of some numbers that were given out after `before`, up to `last`."""
    if before <= last:
        return {pid for pid in numbers if before < pid <= last}
    return {pid for pid in numbers if pid > before or pid <= last}
