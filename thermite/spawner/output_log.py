"""The end of a stage's output, in a file of the harness, while the stage still runs.

The file has its size from the harness: 8 bytes that say how many were ever written, then a
ring. The bytes go in before their count does, and the reader leaves the room of one chunk out:
a kill between the two costs that chunk and tears nothing. Nothing is synced: this outlives
processes, not the machine. The other end is `thermite.rig.output_log`.
"""

import os
import stat
from collections.abc import Sequence
from typing import Final

from .vocabulary import Fields, RefusedError

CHUNK: Final = 1 << 16
"""Most bytes that are added at once."""
HEAD: Final = 8


def check_log(fields: Fields, handed: Sequence[int]) -> None:
    """Refuse a file that no log can be kept in.

    Raises:
        RefusedError: two streams would be mixed up in it, or it is no file of that size.
    """
    if not fields["join_output"]:
        raise RefusedError("a log is kept of a joined output only")
    found = [os.fstat(fd) for fd in handed]
    if not any(stat.S_ISREG(one.st_mode) and one.st_size > HEAD + CHUNK for one in found):
        raise RefusedError(f"a log is a file of more than {HEAD + CHUNK} bytes")


class OutputLog:
    """Keeps the end of one output in an open file; a disk that refuses ends it."""

    def __init__(self, fd: int) -> None:
        self._fd: int | None = fd
        self._ring = os.fstat(fd).st_size - HEAD
        self._total = 0

    def add(self, chunk: bytes) -> None:
        """Write a chunk behind those before."""
        if self._fd is None:
            return
        at = self._total % self._ring
        first, rest = chunk[: self._ring - at], chunk[self._ring - at :]
        self._total += len(chunk)
        head = self._total.to_bytes(HEAD, "little")
        try:
            for raw, where in ((first, HEAD + at), (rest, HEAD), (head, 0)):
                os.pwrite(self._fd, raw, where)
        except OSError:  # what was said before stays, and the stage goes on
            self._fd = None
