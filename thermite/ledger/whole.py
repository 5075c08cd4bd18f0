"""A file that appears whole and synced, or not at all: a kill leaves no half of a ledger."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BESIDE = ("", "-wal", "-shm", "-journal")  # what SQLite may leave with a file


@contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """Give the name under which to make a file (empty, mode 0600), then put it in its place.

    Raises:
        OSError: it can't be made, synced or put there.
    """
    new = path.with_name(path.name + ".new")
    _remove(new)
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600))
    try:
        yield new
        _sync(new, os.O_RDONLY)
        new.rename(path)
    finally:
        _remove(new)
    _sync(path.parent, os.O_RDONLY | os.O_DIRECTORY)


def _remove(path: Path) -> None:
    for ending in _BESIDE:
        path.with_name(path.name + ending).unlink(missing_ok=True)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
