"""Open a ledger for reading, whoever else has it open, and leave no trace.

Three cases: a live ledger has its log and shared memory beside it; a copied file has
neither; and a copy that was taken with its log, or a folder that may not be written to,
has to be read from a private copy, since SQLite would make files beside it.

Source: ledger and signing, 1.1 (WAL) and 3.7.
"""

import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from thermite.errors import LedgerError
from thermite.ledger import tables

_MAGIC: Final = b"SQLite format 3\0"


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection that reads the ledger at a path.

    Raises:
        FileNotFoundError: there is no such file.
        LedgerError: it is no ledger, or of a newer version.
    """
    try:
        what = path.stat()
    except OSError as error:
        if isinstance(error, (FileNotFoundError, NotADirectoryError)):
            raise FileNotFoundError(f"there is no file {path}") from None
        raise LedgerError(f"{path} can't be read: {error.strerror}") from None
    if not stat.S_ISREG(what.st_mode):
        raise LedgerError(f"{path} is no ledger: it is not a plain file")
    log = path.with_name(path.name + "-wal")
    if not _has_bytes(log) and not _shared(path).exists():
        with closing(_checked(path, immutable=True)) as connection:
            yield connection
        return
    if _shared(path).exists():
        try:
            connection = _checked(path, immutable=False)
        except sqlite3.Error:
            pass  # the shared memory can't be used from here: another user's, left by a kill
        else:
            with closing(connection):
                yield connection
            return
    with tempfile.TemporaryDirectory(prefix="thermite-ledger-") as folder:
        copy = _copy(path, Path(folder))
        with closing(_checked(copy, immutable=False)) as connection:
            yield connection


def check_kind(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file that is no ledger, or one that a newer Thermite made.

    Raises:
        LedgerError: says which; nothing of the file's tables was looked at.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != tables.APPLICATION_ID:
        raise LedgerError(
            f"{path} is no ledger: its application id is {application:#x}, and a ledger's is"
            f" {tables.APPLICATION_ID:#x}"
        )
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != tables.USER_VERSION:
        raise LedgerError(
            f"{path} has layout version {version}, and this Thermite knows version"
            f" {tables.USER_VERSION}: upgrade Thermite"
        )


def _checked(path: Path, *, immutable: bool) -> sqlite3.Connection:
    connection = tables.reader(path, immutable=immutable)
    try:
        check_kind(connection, path)
    except sqlite3.DatabaseError as error:
        connection.close()
        if error.sqlite_errorcode in {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}:
            raise LedgerError(f"{path} is no ledger: {error}") from None
        raise
    except LedgerError:
        connection.close()
        raise
    return connection


def _shared(path: Path) -> Path:
    return path.with_name(path.name + "-shm")


def _has_bytes(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _copy(path: Path, folder: Path) -> Path:
    copy = folder / path.name
    try:
        shutil.copyfile(path, copy)
        log = path.with_name(path.name + "-wal")
        if _has_bytes(log):
            shutil.copyfile(log, folder / log.name)
    except OSError as error:
        raise LedgerError(f"{path} can't be copied to be read: {error.strerror}") from None
    return copy
