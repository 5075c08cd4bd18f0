"""A file that appears whole and synced, or not at all: a kill leaves no half of a ledger."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from thermite.errors import LedgerError

BESIDE: Final = ("-wal", "-shm", "-journal")
"""Endings of what SQLite may leave with a file."""
_MAGIC: Final = {
    "": (b"SQLite format 3\0",),
    "-wal": (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"),
    "-shm": (b"\x18\xe2\x2d\x00", b"\x00\x2d\xe2\x18"),
    "-journal": (b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", bytes(8)),
}
"""How such a file begins, unless it is empty: SQLite's pages on its file and WAL formats."""


@contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """Give the name under which to make a file (empty, mode 0600), then put it in its place.

    What a kill left of an earlier making is removed.

    Raises:
        OSError: it can't be made, synced or put there.
        LedgerError: something else has the name, or a name beside it.
    """
    new = unfinished(path)
    for ending in ("", *BESIDE):
        left = beside(new, ending)
        if os.path.lexists(left) and not left_by_sqlite(left):
            raise LedgerError(f"{left} is in the way, and is not of Thermite: move it away")
    _remove(new)
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600))
    try:
        yield new
        _sync(new, os.O_RDONLY)
        new.rename(path)
    finally:
        _remove(new)
    _sync(path.parent, os.O_RDONLY | os.O_DIRECTORY)


def unfinished(path: Path) -> Path:
    """Return the name under which a file is made."""
    return path.with_name(path.name + ".new")


def beside(path: Path, ending: str) -> Path:
    """Return the file that SQLite keeps beside another one."""
    return path.with_name(path.name + ending)


def left_by_sqlite(path: Path) -> bool:
    """Return whether a plain file of one name is empty or begins as its ending says."""
    kind = next((ending for ending in BESIDE if path.name.endswith(ending)), "")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            return False
        return found.st_size == 0 or os.read(descriptor, 16).startswith(_MAGIC[kind])
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    for ending in ("", *BESIDE):
        beside(path, ending).unlink(missing_ok=True)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
