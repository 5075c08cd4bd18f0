"""Files that only their owner reads: made so, replaced whole, and read no other way."""

import os
import secrets
import stat
from pathlib import Path
from typing import Final

from thermite.errors import NotFoundError, UsageError

PRIVATE: Final = 0o600
_OTHERS: Final = 0o077


def create(path: Path, data: bytes, *, mode: int = PRIVATE) -> None:
    """Write a new file with exactly this mode; an existing one is never touched.

    Raises:
        UsageError: there is a file of this name, or the file system keeps no modes.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, mode)
    except FileExistsError:
        raise UsageError(f"{path} exists and is not overwritten: choose another name") from None
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        found = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if found & ~mode:
            path.unlink()
            raise UsageError(
                f"{path} would have the mode {found:04o} instead of {mode:04o}: this file system"
                " keeps no modes (FAT does not), so choose a folder on one that does"
            )
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    sync_folder(path.parent)


def replace(path: Path, data: bytes, *, mode: int = PRIVATE) -> None:
    """Put a file in place of what is there, whole or not at all."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    create(beside, data, mode=mode)
    try:
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def read_private(path: Path, *, most_bytes: int) -> bytes:
    """Return a private file's bytes.

    Raises:
        UsageError: not there, a link or no plain file, too large, of another owner, or
            readable by others; the text says what mends it.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path}") from None
    except OSError as error:
        if path.is_symlink():
            raise UsageError(
                f"{path} is a symbolic link: name the file that it points to, {_target(path)}"
            ) from None
        raise UsageError(f"{path} can't be opened: {error.strerror}") from None
    try:
        _check_private(path, os.fstat(descriptor))
        with os.fdopen(os.dup(descriptor), "rb") as file:
            data = file.read(most_bytes + 1)
    finally:
        os.close(descriptor)
    if len(data) > most_bytes:
        raise UsageError(f"{path} has more than {most_bytes} bytes, which is no such file")
    return data


def read_plain(path: Path, *, most_bytes: int) -> bytes | None:
    """Return a file's bytes, at most one more than these; None where there is no file.

    Raises:
        UsageError: it is there and no plain file, or can't be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageError(f"{path} is no plain file: move it away, and control writes its own")
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(most_bytes + 1)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make names in a folder durable, where the folder may be opened at all."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except PermissionError:
        return  # an inbox that can be written and not listed: the rig scans it again anyway
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _check_private(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise UsageError(f"{path} is no plain file")
    if os.geteuid() not in {0, found.st_uid}:
        raise UsageError(
            f"{path} belongs to user {found.st_uid} and you are user {os.geteuid()}:"
            " use a file of your own"
        )
    mode = stat.S_IMODE(found.st_mode)
    if mode & _OTHERS:
        raise UsageError(
            f"{path} can be read or changed by others (mode {mode:04o}): run chmod 600 {path}; on"
            " a file system without modes (FAT) move it to one that has them"
        )


def _target(path: Path) -> str:
    return str(path.parent / path.readlink())
