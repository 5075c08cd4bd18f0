"""Walking and emptying folders by descriptor: no link followed, no recursion, no path reuse.

A tree may be deeper than PATH_MAX or the stack allows; every component
is opened relative to its folder's descriptor.
"""

import contextlib
import os
import stat
from typing import Final

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def open_folder(name: str, *, at: int) -> int:
    """Open a folder of `at`, never through a link."""
    return os.open(name, FOLDER, dir_fd=at)


def empty(folder: int) -> int:
    """Remove everything below an open folder and return how many entries went.

    A subfolder of a subfolder is first moved up beside it under a fresh name, so that depth
    costs neither descriptors nor stack. What can't be removed is left.
    """
    gone = 0
    stuck: set[str] = set()
    while True:
        names = [name for name in os.listdir(folder) if name not in stuck]
        if not names:
            return gone
        for name in names:
            removed, is_gone = (1, True) if _unlink(folder, name) else _remove_folder(folder, name)
            gone += removed
            if not is_gone:
                stuck.add(name)


def _unlink(folder: int, name: str) -> bool:
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _remove_folder(root: int, name: str) -> tuple[int, bool]:
    """Empty one subfolder of `root` into it, then remove it; say how many went, and if it did."""
    gone = 0
    with contextlib.suppress(OSError):
        os.chmod(name, stat.S_IRWXU, dir_fd=root)
    try:
        here = open_folder(name, at=root)
    except OSError:
        return gone, False
    try:
        for inner in os.listdir(here):
            if _unlink(here, inner):
                gone += 1
            else:
                _lift(here, inner, root)
    finally:
        os.close(here)
    try:
        os.rmdir(name, dir_fd=root)
    except OSError:
        return gone, False
    return gone + 1, True


def _lift(folder: int, name: str, root: int) -> None:
    """Move a subfolder up into the root; moving a folder needs leave to write in it."""
    with contextlib.suppress(OSError):
        os.chmod(name, stat.S_IRWXU, dir_fd=folder)
        os.rename(name, f".lifted-{os.urandom(8).hex()}", src_dir_fd=folder, dst_dir_fd=root)
