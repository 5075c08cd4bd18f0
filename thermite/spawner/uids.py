"""Leased uids: one lock per uid, held for the spawner's whole life.

A file's name is the uid, its content the rig's folder and the slot. Who holds the lock owns
the uid; a file with a free lock that names this very folder is what this rig's dead spawner
left, and its uid is emptied and used again in the same slot. Accounts that `rig init` made come
before numbers that nobody has. Source: isolation, 4.1.

A rig's folder outlives its leases, and whatever a stage's user owns in shared folders is swept
away. So who owns a rig's folder has its number from a part of the range that no stage's comes
from; the number stays that rig's while the folder is there; and none is leased that owns
anything in a shared folder. The first holds after a reboot too, when the leases are gone; the
last, for numbers that another range or an account has given away.
"""

import fcntl
import os
import pwd
import stat
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from . import scan
from .settings import BadSettingsError
from .shared import Look

REAPER: Final = "reaper"
"""The killer's own user, whose lease is like a slot's."""
OWNERS: Final = ("thermite", "supervisor")
"""The slots whose users own files in the rig's folder for as long as it is there."""
_MOST_CONTENT: Final = 8192
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
        missing = [slot for slot in wanted if slot not in self.held]
        if not missing:
            return
        alive, (here, elsewhere) = scan.all_uids(), self._owning()
        for slot in missing:
            account = _account_of(slot)
            if account is not None and account not in alive:
                self._lock(account, slot)
        # What a number has in this very rig's folder is no reason against its owner's having it.
        passed = {slot: alive | elsewhere | (set() if slot in OWNERS else here) for slot in missing}
        left = [
            slot
            for slot in missing
            if slot not in self.held
            and not any(self._lock(uid, slot) for uid in self._free(slot, passed[slot]))
        ]
        if left:
            owning = f", {len(elsewhere)} of which own files in shared folders" if elsewhere else ""
            raise BadSettingsError(
                f"no free uid for {', '.join(left)} from {self.low} to {self.high}{owning}:"
                " widen THERMITE_UID_RANGE"
            )

    def owns(self, uid: int) -> bool:
        """Return whether this rig holds the lock of `uid`."""
        return uid in self._fds

    def renew(self, slot: str) -> bool:
        """Make a slot's lease again where somebody has thrown its file away.

        Else another rig could lease the number, and each would end the other's stages.

        Returns:
            False when somebody else has it by now.

        Raises:
            OSError, BadSettingsError: it can't be made again.
        """
        uid = self.held[slot]
        fd = self._fds.get(uid)
        if fd is not None and _is_at(f"{self.folder}/{uid}", fd):
            return True
        _make_private(self.folder)
        is_had = self._lock(uid, slot)
        if fd is not None:
            os.close(fd)
            if not is_had:
                del self._fds[uid]
        return is_had

    def release(self, uid: int) -> None:
        """Give back what a dead spawner left and no slot of this one needs."""
        path = f"{self.folder}/{uid}"
        if _is_at(path, self._fds[uid]) and not _is_kept(path):  # else it is another rig's by now
            os.unlink(path)
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
            if _is_somebodys(uid):  # whoever made the account, its processes are not ours to end
                os.unlink(path)
                os.close(fd)
                continue
            self._fds[uid] = fd
            self.left_behind.append(uid)
            if slot in wanted and slot not in self.held:
                self.held[slot] = uid

    @property
    def _range(self) -> range:
        return range(self.low, self.high + 1)

    def _owning(self) -> tuple[set[int], set[int]]:
        """Return whose numbers own something in shared folders: in this rig's own, elsewhere."""
        here, elsewhere = set[int](), set[int]()
        state = os.path.realpath(self.state)
        for path, _, names in Look(self._range):
            is_here = path == state or path.startswith(f"{state}/")
            (here if is_here else elsewhere).update(names.values())
        return here, elsewhere

    def _free(self, slot: str, passed: Container[int]) -> Iterator[int]:
        """Return the numbers to try for a slot: those that nobody had since the start first."""
        known = {*os.listdir(self.folder)}
        own = [uid for uid in numbers_for(slot, self._range) if uid not in self._fds]
        for uid in sorted(own, key=lambda uid: str(uid) in known):
            if uid not in passed and not _is_account(uid):
                yield uid

    def _lock(self, uid: int, slot: str) -> bool:
        """Lease a number, but for one that is kept for another rig; return whether it is had."""
        path = f"{self.folder}/{uid}"
        fd = _locked(path)
        if fd is None:
            return False
        if _is_kept(path):
            os.close(fd)
            return False
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{self.state}\n{slot}\n".encode("utf-8", "surrogateescape"), 0)
        self._fds[uid] = fd
        self.held[slot] = uid
        return True


def numbers_for(slot: str, numbers: range) -> range:
    """Return the part of a range that a slot's number comes from; the last quarter owns rigs."""
    owners = max(len(OWNERS), len(numbers) // 4)
    return numbers[-owners:] if slot in OWNERS else numbers[:-owners]


def _is_kept(path: str) -> bool:
    """Return whether a lease is of who owns a rig's folder that is still there."""
    state, slot, *_ = [*_content(path), "", ""]
    return slot in OWNERS and os.path.lexists(state)


def _locked(path: str) -> int | None:
    """Open and lock a lease; None when somebody has it, or it was removed meanwhile."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    fd = os.open(path, flags, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(path, fd):
            return fd
    except BlockingIOError:
        pass
    os.close(fd)
    return None


def _is_at(path: str, fd: int) -> bool:
    """Return whether an open lease's file is still the one at its path."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def _content(path: str) -> list[str]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return []
    try:
        return os.read(fd, _MOST_CONTENT).decode("utf-8", "surrogateescape").splitlines()
    finally:
        os.close(fd)


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


def _is_somebodys(uid: int) -> bool:
    """Return whether a number is an account's that `rig init` did not make."""
    try:
        found = pwd.getpwuid(uid)
    except KeyError:
        return False
    return (found.pw_gecos, found.pw_dir, found.pw_shell) != _MADE


def _is_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True
