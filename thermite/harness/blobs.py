"""Things too large for an event, each by its SHA-256, whole and synced before it is named.

A file gets its name only when its bytes are on the disk, so that one that is there is whole.
Several are synced side by side: a disk takes them in one go.
"""

import os
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SIDE_BY_SIDE: Final = 8
"""Syncs that wait at once; 16 files took half the time of one after the other (measured)."""


@dataclass(frozen=True)
class Half:
    """Bytes that are written and not yet kept: `path` becomes `target`."""

    path: Path
    target: Path


def keep_blob(folder: Path, name: str, raw: bytes) -> None:
    """Keep bytes under a name; the same name twice is once.

    Raises:
        OSError: the disk refuses; nothing is there under that name.
    """
    half = write_half(folder, name, raw)
    if half is not None:
        keep_halves(folder, [half])


def write_half(folder: Path, name: str, raw: bytes) -> Half | None:
    """Write bytes that `keep_halves` will keep, or return None where they are kept already.

    Raises:
        OSError: the disk refuses; nothing is left of it.
    """
    target = folder / name
    if target.exists():
        return None
    path = folder / f".half-{secrets.token_hex(8)}"
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return Half(path, target)


def keep_halves(folder: Path, halves: Sequence[Half]) -> None:
    """Sync what was written, name it, and sync the folder; then it is kept.

    Raises:
        OSError: the disk refuses; what has a name is whole all the same.
    """
    try:
        if len(halves) > 1:
            with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
                list(pool.map(_sync, [half.path for half in halves]))
        else:
            for half in halves:
                _sync(half.path)
        for half in halves:
            half.path.rename(half.target)
        if halves:
            _sync(folder)
    finally:
        forget(halves)


def forget(halves: Sequence[Half]) -> None:
    """Remove what is not kept."""
    for half in halves:
        half.path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
