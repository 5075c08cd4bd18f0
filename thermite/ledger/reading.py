"""Open a ledger for reading, whoever else has it open, and leave no trace.

Three cases: a live ledger has its log and shared memory beside it; a copied file has
neither; and a copy that was taken with its log, or a folder that may not be written to,
has to be read from a private copy, since SQLite would make files beside it.

Source: ledger and signing, 1.1 (WAL) and 3.7.
"""

import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from thermite.errors import LedgerBusyError, LedgerError
from thermite.ledger import tables
from thermite.ledger.disk import refused


@contextmanager
def opened(path: Path, *, any_version: bool = False) -> Iterator[sqlite3.Connection]:
    """Give a connection that reads the ledger at a path.

    Args:
        path: the file.
        any_version: take a file whose layout another version of Thermite made, too, or anybody.

    Raises:
        FileNotFoundError: there is no such file.
        LedgerError: it is no ledger, or was changed by another program meanwhile.
    """
    before = _look(path)
    shared, log = path.with_name(path.name + "-shm"), path.with_name(path.name + "-wal")
    with ExitStack() as stack:
        connection = None
        if shared.exists():
            # Another user's shared memory, left by a kill, can't be used: read a copy then.
            with suppress(sqlite3.OperationalError):
                connection = _checked(path, immutable=False, any_version=any_version)
        elif not _has_bytes(log):
            connection = _checked(path, immutable=True, any_version=any_version)
            stack.callback(_check_untouched, path, before)
        if connection is None:
            copy = _copy(path, Path(stack.enter_context(TemporaryDirectory())))
            connection = _checked(copy, immutable=False, any_version=any_version)
        stack.callback(connection.close)
        yield connection


def log_bytes(path: Path) -> int:
    """Return the size of the write-ahead log beside a ledger, 0 without one."""
    log = path.with_name(path.name + "-wal")
    return log.stat().st_size if log.exists() else 0


def log_problem(path: Path) -> str | None:
    """Return why the write-ahead log beside a ledger is large, or None.

    Reads of ours are short, whoever waits for what they give, and so the log starts over
    (known fault L7); another program may hold one view of the file for as long as it likes.
    """
    if log_bytes(path) <= tables.LARGE_LOG_BYTES:
        return None
    return (
        f"it grows while a program holds one view of {path} open: end that one (fuser -v names"
        " who has the file), and let it read a copy (thermite ledger backup)"
    )


def check_kind(connection: sqlite3.Connection, path: Path, *, any_version: bool) -> None:
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
    if version != tables.USER_VERSION and not any_version:
        raise LedgerError(
            f"{path} has layout version {version}, and this Thermite knows version"
            f" {tables.USER_VERSION}: upgrade Thermite"
        )


def _look(path: Path) -> os.stat_result:
    try:
        what = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(f"there is no file {path}") from None
    except OSError as error:
        raise LedgerError(f"{path} can't be read: {error.strerror}") from None
    if not stat.S_ISREG(what.st_mode):
        raise LedgerError(f"{path} is no ledger: it is not a plain file")
    if not os.access(path, os.R_OK):
        raise LedgerError(
            f"{path} is not yours to read: ask as the rig's owner or as root, or have them make"
            " you a copy (thermite ledger backup)"
        )
    return what


def _check_untouched(path: Path, before: os.stat_result) -> None:
    """Refuse what was read without a lock, when somebody wrote to it meanwhile."""
    now = _look(path)
    if (now.st_ino, now.st_size, now.st_mtime_ns) != (
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    ):
        raise LedgerBusyError(f"{path} was written to while it was read: run this again")


def _checked(path: Path, *, immutable: bool, any_version: bool) -> sqlite3.Connection:
    """Open a file and look at its kind; an OperationalError says that it can't be used here."""
    with ExitStack() as stack:
        try:
            connection = tables.reader(path, immutable=immutable)
            stack.callback(connection.close)
            check_kind(connection, path, any_version=any_version)
            changed = None if any_version else tables.changed_table(connection)
        except sqlite3.OperationalError as error:
            if immutable:
                raise LedgerError(f"{path} can't be read: {error}") from None
            raise
        except tables.FILE_ERRORS as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_CORRUPT:
                raise LedgerError(
                    f"{path} is damaged ({error}), as a copy is that was cut short: copy it once"
                    " more with thermite ledger backup, or take another copy"
                ) from None
            raise LedgerError(f"{path} is no ledger: {error}") from None
        if changed is not None:
            raise LedgerError(
                f"{path} was changed: table {changed} is not what Thermite made; run thermite audit"
            )
        stack.pop_all()
    return connection


def _has_bytes(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _copy(path: Path, folder: Path) -> Path:
    copy = folder / path.name
    log = path.with_name(path.name + "-wal")
    try:
        shutil.copyfile(path, copy)
        if _has_bytes(log):
            shutil.copyfile(log, folder / log.name)
    except OSError as error:
        raise refused(f"{path} can't be copied to be read", error, folder.parent) from None
    return copy
