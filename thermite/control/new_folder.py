"""A folder that is filled whole, or left as it was."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Fill a folder that is empty or not there yet; whatever ends it early takes all out again."""
    was_there = folder.is_dir()
    done = False
    try:
        yield
        done = True
    finally:
        if not done and folder.is_dir():
            _empty(folder)
            if not was_there:
                folder.rmdir()


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
