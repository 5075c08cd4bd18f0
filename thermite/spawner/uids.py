"""Leased uids: one lock per uid, held for the spawner's whole life.

A file's name is the uid, its content the rig's folder and the slot. Who holds the lock owns
the uid; a file with a free lock that names this very folder is what this rig's dead spawner
left, and its uid is emptied and used again in the same slot. Accounts that `rig init` made come
before numbers that nobody has. Source: isolation, 4.1.
"""

import fcntl
import os
import pwd
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from . import scan
from .settings import BadSettingsError

_MOST_CONTENT: Final = 8192
_KEEPERS: Final = ("thermite", "supervisor")
"""Whose files stay in a rig's folder when it has ended: ledger, keys, access."""
_MADE: Final = ("thermite rig", "/nonexistent", "/usr/sbin/nologin")
"""Comment, home and shell of the accounts that `rig init` makes."""


@dataclass
class Leases:
    """The uids that this rig holds."""

    folder: str
    state: str
    low: int
    high: int
    held: dict[str, int] = field(default_factory=dict)
    left_behind: list[int] = field(default_factory=list)
    _fds: dict[int, int] = field(default_factory=dict)

    def take(self, slots: Iterable[str]) -> None:
        """Lease one uid for each slot, the last ones again where they can be had.

        Raises:
            BadSettingsError: the range has not enough free uids.
        """
        _make_private(self.folder)
        wanted = list(slots)
        self._take_back(wanted)
        used = scan.all_uids()
        for slot in wanted:
            uid = _account_of(slot)
            if slot not in self.held and uid is not None and uid not in used:
                self._lock(uid, slot)
        numbers = range(self.low, self.high + 1)
        # A uid that nobody had before owns no file anywhere: such ones first.
        for known in (False, True):
            for uid in numbers:
                if all(slot in self.held for slot in wanted):
                    return
                path = f"{self.folder}/{uid}"
                if uid in self._fds or os.path.exists(path) != known or uid in used:
                    continue
                if known and _owns_a_rigs_files(path):
                    continue
                if not _is_account(uid):
                    self._lock(uid, next(slot for slot in wanted if slot not in self.held))
        missing = [slot for slot in wanted if slot not in self.held]
        if missing:
            raise BadSettingsError(
                f"no free uid for {', '.join(missing)} from {self.low} to {self.high}:"
                " widen THERMITE_UID_RANGE"
            )

    def owns(self, uid: int) -> bool:
        """Return whether this rig holds the lock of `uid`."""
        return uid in self._fds

    def release(self, uid: int) -> None:
        """Give back what a dead spawner left and no slot of this one needs."""
        os.unlink(f"{self.folder}/{uid}")
        os.close(self._fds.pop(uid))
        if uid in self.left_behind:
            self.left_behind.remove(uid)

    def give_up(self) -> None:
        """Give back all but what a dead spawner left and nobody has cleared."""
        for uid in list(self._fds):
            if uid not in self.left_behind:
                self.release(uid)
        self.held.clear()

    def end(self) -> None:
        """Give everything back: nothing of these uids is left."""
        for uid in list(self._fds):
            self.release(uid)

    def _take_back(self, wanted: list[str]) -> None:
        """Lock what this rig's dead spawner held; a slot gets its old uid."""
        for name in sorted(os.listdir(self.folder)):
            path = f"{self.folder}/{name}"
            state, slot, *_ = [*_content(path), "", ""]
            if not name.isdigit() or state != self.state:
                continue
            uid, fd = int(name), _locked(path)
            if fd is None:
                continue
            self._fds[uid] = fd
            self.left_behind.append(uid)
            if slot in wanted and slot not in self.held:
                self.held[slot] = uid

    def _lock(self, uid: int, slot: str) -> None:
        path = f"{self.folder}/{uid}"
        fd = _locked(path)
        if fd is None:
            return
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{self.state}\n{slot}\n".encode("utf-8", "surrogateescape"), 0)
        self._fds[uid] = fd
        self.held[slot] = uid


def _locked(path: str) -> int | None:
    """Open and lock a lease; None when somebody has it, or it was removed meanwhile."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(path, flags, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(path).st_ino == os.fstat(fd).st_ino:
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None


def _content(path: str) -> list[str]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return []
    try:
        return os.read(fd, _MOST_CONTENT).decode("utf-8", "surrogateescape").splitlines()
    finally:
        os.close(fd)


def _owns_a_rigs_files(path: str) -> bool:
    """Return whether a lease names a folder that is still there and a slot that owns files in it.

    Whoever had that number could read the rig's key, and write its ledger.
    """
    state, slot, *_ = [*_content(path), "", ""]
    return slot in _KEEPERS and os.path.isdir(state)


def _make_private(folder: str) -> None:
    os.makedirs(folder, 0o700, exist_ok=True)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o077:
        raise BadSettingsError(f"{folder} must be a folder of root's with mode 0700")


def _account_of(slot: str) -> int | None:
    """Return the uid of the account that `rig init` made for a slot, if it did.

    Home and shell are no less a mark than the comment: nobody can give these to himself.
    """
    noun, _, number = slot.rpartition("-")
    name = noun if number == "0" and noun != "worker" else slot
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        return None
    mark = (found.pw_gecos, found.pw_dir, found.pw_shell)
    is_made = mark == _MADE and found.pw_uid == found.pw_gid
    return found.pw_uid if is_made and found.pw_uid else None


def _is_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
