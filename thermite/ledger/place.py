"""Where a ledger may lie, and that one process at a time writes to it.

Source: ledger and signing, 1.1: WAL needs memory shared by all who open the file, which a
network filesystem does not give; and known fault L1, which shows as a late I/O error.
"""

import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psutil

from thermite.errors import LedgerBusyError
from thermite.ledger.disk import refused

_NETWORK: Final = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "gfs2",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
    }
    | {"ocfs2", "orangefs", "smb3", "smbfs", "vboxsf"}
)
_LOCKS: Final = Path("/proc/locks")
_MOST_PID_BYTES: Final = 20  # of the text of a process id


def filesystem_problem(path: Path, mounts: Sequence[tuple[str, str]] | None = None) -> str | None:
    """Return why a ledger can't lie at a path, or None.

    Args:
        path: the ledger's file, there or not yet.
        mounts: (mount point, type) of each filesystem; None: this machine's.
    """
    real = path.parent.resolve() / path.name  # first: it may have a filesystem mounted
    if mounts is None:
        mounts = [(part.mountpoint, part.fstype) for part in psutil.disk_partitions(all=True)]
    holding = [(point, kind) for point, kind in mounts if real.is_relative_to(point)]
    # Of two mounts on one point, the later one is what the path shows.
    point, kind = max(reversed(holding), key=lambda mount: len(mount[0]), default=("/", "unknown"))
    if kind not in _NETWORK and not kind.startswith("fuse"):
        return None
    return (
        f"{path} lies on {point}, a filesystem of type {kind}, where SQLite's log is not safe:"
        " put the rig's folder on a local disk, such as /var/lib/thermite"
    )


def is_written(ledger: Path) -> bool | None:
    """Return whether a process has the writer's lock of a ledger; None when it can't be known.

    Nothing is locked for it, so that no rig that starts meanwhile finds its ledger taken. The
    kernel tells of locks by inode; those of an outer pid namespace can't be seen.

    Source: proc_locks(5).
    """
    try:
        inode = ledger.with_suffix(".lock").stat().st_ino
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None  # a copy without its lock, or no Linux
    held = (line.split() for line in lines if " FLOCK " in line and "->" not in line)
    return any(words[5].rpartition(":")[2] == str(inode) for words in held)


class WriterLock:
    """The lock that the one writer of a ledger holds: `ledger.lock` beside `ledger.db`."""

    def __init__(self, ledger: Path) -> None:
        """Take the lock of the ledger at a path.

        Raises:
            LedgerBusyError: somebody else has it.
            LedgerError: the file can't be made; LedgerUnavailableError: its disk refuses.
        """
        path = ledger.with_suffix(".lock")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise refused(f"{path} can't be opened", error, path.parent) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(self._file, _MOST_PID_BYTES).decode("ascii", "replace").strip()
            os.close(self._file)
            raise LedgerBusyError(
                f"{ledger} is written to by process {holder or 'unknown'}: only one process"
                " may, so end that one first"
            ) from None
        try:
            os.ftruncate(self._file, 0)
            os.write(self._file, f"{os.getpid()}\n".encode())
        except OSError as error:
            os.close(self._file)
            raise refused(f"{path} can't be written", error, path.parent) from None

    def release(self) -> None:
        """Give the lock back; the file stays, since removing it would let two in."""
        os.close(self._file)
