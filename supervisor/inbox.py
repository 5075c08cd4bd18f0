"""Files in `inbox/new`: find them, tell one from another, read each once.

A scan of the folder is the only truth: events get lost, time stamps lie, and writers do not
always rename. So a file is known by where and what it is, and one that does not parse is
given time. Step 1 of ledger and signing, 3.9; 1.4 for what writers do.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from thermite.schema.command import MAX_COMMAND_BYTES
from thermite.schema.offer import COMMAND_SUFFIX

SETTLE_S: Final = 2.0
"""Two scans that see the same file are at least so far apart, s (ledger and signing, 1.4)."""
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SUFFIX: Final = COMMAND_SUFFIX.encode()


class Mark(NamedTuple):
    """One state of one file: when any of this differs, it is looked at again."""

    name: bytes
    dev: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int


class Place(NamedTuple):
    """Device and inode of a folder: it may be taken away and made anew."""

    dev: int
    ino: int


class FileProblemError(Exception):
    """A file can't be read as a command file.

    Args:
        may_pass: the writer may still be at work, so it is refused only once it has settled.
    """

    def __init__(self, code: str, message: str, *, may_pass: bool) -> None:
        super().__init__(message)
        self.code = code
        self.may_pass = may_pass


class Inbox:
    """The folder `inbox/new` of one rig."""

    def __init__(self, inbox: Path) -> None:
        self.new = inbox / "new"

    def place(self) -> Place | None:
        """Return where the folder is now, or None while there is none."""
        try:
            found = self.new.stat(follow_symlinks=False)
        except OSError:
            return None
        return Place(found.st_dev, found.st_ino) if stat.S_ISDIR(found.st_mode) else None

    def scan(self) -> list[Mark]:
        """Return a mark of every command file, by name; nothing while there is no folder.

        Folders, dot-files and names without the suffix are no commands, whatever they hold.
        """
        with self._open_folder() as folder:
            if folder is None:
                return []
            names = os.listdir(folder)  # noqa: PTH208 (a path can't name a descriptor)
            marks = [mark for name in names if (mark := _mark(folder, name))]
        return sorted(marks)

    def read(self, mark: Mark) -> bytes:
        """Return a file's bytes, read once.

        Raises:
            FileProblemError: `not_a_plain_file`, `too_large` or `unreadable`.
        """
        with self._open_folder() as folder:
            if folder is None:
                raise FileProblemError("unreadable", "inbox/new is gone", may_pass=True)
            try:
                descriptor = os.open(mark.name, _OPEN, dir_fd=folder)
            except OSError as error:
                raise _open_problem(error) from None
            with open(descriptor, "rb", closefd=True) as file:  # noqa: PTH123 (a descriptor)
                _check_kind(os.fstat(descriptor))
                raw = file.read(MAX_COMMAND_BYTES + 1)
        if len(raw) > MAX_COMMAND_BYTES:
            raise _too_large(len(raw))
        return raw

    @contextmanager
    def _open_folder(self) -> Iterator[int | None]:
        try:
            folder = os.open(self.new, _FOLDER)
        except OSError:
            yield None
            return
        try:
            yield folder
        finally:
            os.close(folder)


class Settling:
    """Which files have stayed the same for long enough, on the monotonic clock."""

    def __init__(self) -> None:
        self._since: dict[Mark, float] = {}

    def has_settled(self, mark: Mark, now_s: float) -> bool:
        """Return whether this very state was seen at least `SETTLE_S` before now_s."""
        return now_s - self._since.setdefault(mark, now_s) >= SETTLE_S

    def keep(self, marks: set[Mark]) -> None:
        """Forget all states but these."""
        self._since = {mark: since for mark, since in self._since.items() if mark in marks}

    @property
    def waiting(self) -> bool:
        """Whether some file is being watched."""
        return bool(self._since)


def _mark(folder: int, text: str) -> Mark | None:
    name = os.fsencode(text)
    if name.startswith(b".") or not name.endswith(_SUFFIX):
        return None
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None  # moved since it was listed
    if stat.S_ISDIR(found.st_mode):
        return None
    return Mark(
        name, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    )


def _open_problem(error: OSError) -> FileProblemError:
    if error.errno in {errno.ELOOP, errno.ENXIO}:  # a link; a socket
        return _not_plain("it is a link or a socket")
    reason = os.strerror(error.errno or 0).lower()
    return FileProblemError(
        "unreadable",
        f"this file can't be read ({reason}): drop it with mode 0644",
        may_pass=True,
    )


def _check_kind(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _not_plain("it is a pipe, a device or something like it")
    if found.st_nlink != 1:
        problem = _not_plain(f"it has {found.st_nlink} names (hard links)")
        problem.may_pass = True  # a mail-folder writer links first and unlinks then
        raise problem
    if found.st_size > MAX_COMMAND_BYTES:
        raise _too_large(found.st_size)


def _not_plain(what: str) -> FileProblemError:
    return FileProblemError(
        "not_a_plain_file",
        f"a command is a plain file with one name, and {what}: drop a copy of the file itself",
        may_pass=False,
    )


def _too_large(size: int) -> FileProblemError:
    return FileProblemError(
        "too_large",
        f"this file has {size} bytes or more, and a command has at most {MAX_COMMAND_BYTES}:"
        " send large things as bundles",
        may_pass=False,
    )
