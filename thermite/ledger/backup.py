"""A copy of a ledger that is whole, whoever writes to the original meanwhile.

`cp` of a live file loses what its log holds, or takes half of it: SQLite's own backup is
the one safe way. Source: ledger and signing, 1.1 (WAL) and 3.1.
"""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from thermite.errors import LedgerError
from thermite.ledger.reading import opened
from thermite.ledger.replay import checked
from thermite.ledger.tables import FILE_ERRORS
from thermite.ledger.whole import made_whole


def back_up(path: Path, target: Path) -> int:
    """Copy the ledger at a path to a new file, check the copy, and return its events.

    Args:
        path: the ledger, live or not.
        target: a file that does not exist; it appears when it is whole and synced.

    Raises:
        FileNotFoundError: there is no ledger.
        LedgerError: the target exists or can't be written, or a hash does not fit.
    """
    if os.path.lexists(target):
        raise LedgerError(f"there is a file {target} already: name a new one")
    with opened(path) as connection:
        try:
            with made_whole(target) as new:
                with closing(sqlite3.connect(new)) as copy:
                    connection.backup(copy)
                    # A copy is for keeping: one file, with no log beside it.
                    copy.execute("PRAGMA journal_mode=DELETE")
                return sum(1 for _ in checked(new))
        except OSError as error:
            raise LedgerError(f"{target} can't be written: {error.strerror}") from None
        except FILE_ERRORS as error:
            raise LedgerError(f"{path} can't be copied to {target}: {error}") from None
