"""What files take up: all below one folder, or all of one user in a folder that is everybody's.

By descriptors, never through a link, on a tree that may change meanwhile; it ends at the limit.
"""

import errno
import os
import stat
from typing import Final

from .tree import FOLDER

MOST_ENTRIES: Final = 50_000
MOST_LEVELS: Final = 128
_MOST_OF_OTHERS: Final = 10_000
"""Entries of a shared folder that are looked at; the time of some 30 ms (our figure)."""
_INODE: Final = 1024
"""About what the kernel holds for a file in memory beside its pages: inode and name."""
_SECTOR: Final = 512
"""Unit of st_blocks (stat(2))."""


class OverError(Exception):
    """A folder holds more than it may."""


def owned_bytes(top: str, uid: int, limit: int, *, in_memory: bool = False) -> int:
    """Return what a user's entries in a shared folder take up, with all below them, bytes.

    in_memory: each entry itself counts as well, since nothing else bounds their number there.

    Raises:
        OverError: that is over the limit, or holds more entries or levels than may be.
    """
    each = _INODE if in_memory else 0
    total = own = others = 0
    try:
        with os.scandir(top) as listing:
            for entry in listing:
                found = _look_at(entry)
                if found is None or found.st_uid != uid:
                    others += 1
                    if others > _MOST_OF_OTHERS:
                        break
                    continue
                own += 1
                total += each + found.st_blocks * _SECTOR
                if stat.S_ISDIR(found.st_mode):
                    total += _below(entry.path, limit - total, each)
                if total > limit or own > MOST_ENTRIES:
                    raise OverError
    except OSError:
        return total  # there is none, or none for this process
    return total


def _look_at(entry: "os.DirEntry[str]") -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _below(path: str, limit: int, each: int) -> int:
    try:
        fd = os.open(path, FOLDER)
    except OSError:
        return 0
    try:
        return weigh(fd, limit, each)
    finally:
        os.close(fd)


def weigh(root: int, limit: int, each: int = 0) -> int:
    """Return the allocated bytes below an open folder, each inode counted once.

    each: what every entry counts beside.

    Raises:
        OverError: more bytes than `limit`, too many entries, too deep, or it can't be walked.
    """
    total, entries = 0, 0
    seen: set[int] = set()
    stack: list[tuple[int, list[str]]] = [(root, _names(root, MOST_ENTRIES))]
    try:
        while stack:
            here, names = stack[-1]
            if not names:
                stack.pop()
                if here != root:
                    os.close(here)
                continue
            name = names.pop()
            entries += 1
            found = _look(here, name)
            if found is None:
                continue
            total += each + _blocks(found, seen)
            if total > limit or entries >= MOST_ENTRIES or len(stack) >= MOST_LEVELS:
                raise OverError
            if stat.S_ISDIR(found.st_mode):
                _descend(here, name, stack, MOST_ENTRIES - entries)
    finally:
        for fd, _ in stack:
            if fd != root:
                os.close(fd)
    return total


def _blocks(found: os.stat_result, seen: set[int]) -> int:
    """Return an entry's allocated bytes, 0 for an inode that was counted before."""
    if found.st_nlink > 1 and not stat.S_ISDIR(found.st_mode):
        if found.st_ino in seen:
            return 0
        seen.add(found.st_ino)
    return found.st_blocks * _SECTOR


def _look(folder: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError:
        raise OverError from None


def _descend(here: int, name: str, stack: list[tuple[int, list[str]]], most: int) -> None:
    try:
        fd = os.open(name, FOLDER, dir_fd=here)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno in {errno.ENOTDIR, errno.ELOOP}:
            return
        raise OverError from None
    try:
        names = _names(fd, most)
    except OverError:
        os.close(fd)
        raise
    stack.append((fd, names))


def _names(folder: int, most: int) -> list[str]:
    """Return a folder's names; a listing that passes `most` is not read to its end."""
    names: list[str] = []
    with os.scandir(folder) as listing:
        for entry in listing:
            names.append(entry.name)
            if len(names) > most:
                raise OverError
    return names
