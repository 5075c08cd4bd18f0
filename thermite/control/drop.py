"""Files into an inbox, as a maildir takes them: written in tmp/, synced, renamed into new/.

A reader never sees half a file, and an order comes last, when all it names is there.
Source: ledger and signing, 1.4; qmail's maildir(5).
"""

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, Final

from thermite.control.private_file import sync_folder
from thermite.errors import ThermiteError, UnreachableError, UsageError

ORDER_SUFFIX: Final = ".cmd.json"
READABLE: Final = 0o644
"""Mode of a dropped file: the rig's users read it, nobody else changes it."""

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def drop_file(inbox: Path, name: str, source: Path) -> None:
    """Copy a file into an inbox under this name; the same file twice is one.

    Raises:
        UnreachableError: the inbox is not there, or can't be written.
        UsageError: no room, or another file of this name.
    """
    if _is_there(inbox / "new" / name, source):
        return
    with source.open("rb") as content:
        _drop(inbox, name, content)


def drop_bytes(inbox: Path, name: str, data: bytes) -> None:
    """Write bytes into an inbox under this name.

    Raises:
        UnreachableError: the inbox is not there, or can't be written.
        UsageError: no room.
    """
    with _places(inbox) as (beside, _):
        written = beside / f"{secrets.token_hex(16)}.part"
    with _creating(written) as file:
        file.write(data)
    _rename(written, inbox / "new" / name)


def order_name() -> str:
    """Return a fresh random name for an order's file."""
    return f"{secrets.token_hex(16)}{ORDER_SUFFIX}"


def _drop(inbox: Path, name: str, content: IO[bytes]) -> None:
    with _places(inbox) as (beside, _):
        written = beside / f"{secrets.token_hex(16)}.part"
    with _creating(written) as file:
        shutil.copyfileobj(content, file, 1 << 20)
    _rename(written, inbox / "new" / name)


@contextmanager
def _places(inbox: Path) -> Iterator[tuple[Path, Path]]:
    """Yield tmp/ and new/ of an inbox that has both."""
    beside, new = inbox / "tmp", inbox / "new"
    if not beside.is_dir() or not new.is_dir():
        raise UnreachableError(
            f"{inbox} is no inbox: it has no folders tmp and new; is the rig's folder mounted, and"
            " has thermite rig serve run there?"
        )
    yield beside, new


@contextmanager
def _creating(path: Path) -> Iterator[IO[bytes]]:
    """Yield a new file that is whole, synced and readable when the block ends, or gone."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(path, flags, READABLE), "wb") as file:
            os.fchmod(file.fileno(), READABLE)
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise _in_words(error, path) from None


def _rename(written: Path, final: Path) -> None:
    try:
        written.rename(final)
    except OSError as error:
        written.unlink(missing_ok=True)
        if error.errno == errno.EPERM and os.path.lexists(final):  # the folder is sticky
            raise UnreachableError(
                f"{final} is another user's, and not what you send: have its owner or the rig's"
                " remove it"
            ) from None
        raise _in_words(error, final) from None
    sync_folder(final.parent)


def _in_words(error: OSError, path: Path) -> ThermiteError:
    if error.errno in _FULL:
        return UsageError(f"there is no room left for {path}: free some and send it again")
    if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
        return UnreachableError(
            f"{path.parent} can't be written by user {os.geteuid()}: have the rig's owner add you"
            " to the group thermite-drop"
        )
    return UnreachableError(f"{path} can't be written: {error.strerror}")


def _is_there(final: Path, source: Path) -> bool:
    """Return whether the inbox holds these bytes under this name already."""
    try:
        with final.open("rb") as old, source.open("rb") as new:
            if os.fstat(old.fileno()).st_mode & READABLE != READABLE:
                return False  # the rig could not read it
            same = _hash(old) == _hash(new)
    except OSError:
        return False
    if not same:
        raise UsageError(
            f"{final} exists and holds other bytes: give the file another name, or wait until the"
            " rig has taken it"
        )
    return True


def _hash(file: BufferedReader) -> bytes:
    return hashlib.file_digest(file, "sha256").digest()
