"""What a disk that refuses is called: it says nothing of a ledger, and may have room again."""

import errno
from pathlib import Path
from typing import Final

from thermite.errors import LedgerError, LedgerUnavailableError

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
OF_THE_DISK: Final = FULL | {errno.EIO, errno.EROFS}
"""Errors of the operating system that are the disk's: they say nothing of a ledger."""


def refused(said: str, error: OSError, folder: Path) -> LedgerError:
    """Return the error of a ledger's file that the system refuses: a full disk has room again.

    Args:
        said: what can't be done; folder: where the file lies.
    """
    text = f"{said}: {error.strerror}"
    if error.errno not in OF_THE_DISK:
        return LedgerError(text)
    remedy = "make room" if error.errno in FULL else "look after the disk"
    return LedgerUnavailableError(f"{text}: {remedy} in {folder}")
