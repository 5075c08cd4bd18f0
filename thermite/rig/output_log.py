"""What a stage says while it runs, in a file that outlives whoever is killed.

The spawner's attendant writes it; the harness that comes after a kill reads it. A file without
its stage's end holds the last bytes that were said, never more than the stage's own limit of
output. The other end and the form are those of `thermite/spawner/output_log.py`.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

HEAD: Final = 8
"""Bytes that say how many were written, least significant first; the ring is behind them."""
CHUNK: Final = 1 << 16
"""Room of one write, which may have been going on: what lies there is not believed."""
MOST: Final = 1 << 20
"""Most bytes that are kept of an output, as the spawner's own."""


@contextmanager
def open_log(path: Path, output_kib: int) -> Iterator[int]:
    """Give the descriptor of a new log that keeps so much of an output.

    Raises:
        OSError: it can't be made.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        os.ftruncate(descriptor, HEAD + CHUNK + min(output_kib << 10, MOST))
        yield descriptor
    finally:
        os.close(descriptor)


def read_log(path: Path) -> bytes:
    """Return what a log holds, nothing when there is none or nothing was said.

    After a power cut the disk may have less of it, or zeros where it has none.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(HEAD + CHUNK + MOST)
    except FileNotFoundError:
        return b""
    ring, keep = raw[HEAD:], len(raw) - HEAD - CHUNK
    if keep <= 0:
        return b""
    total = int.from_bytes(raw[:HEAD], "little")
    if total <= len(ring):
        said = ring[:total]
    else:
        at = total % len(ring)
        said = ring[at:] + ring[:at]
    return said[-keep:]
