"""The inbox's folders as the harness touches them: move what is decided, read what is imported.

Everything in `new/` is written by others and may change at any moment. So a file is moved by
name but known by device and inode, and looked at again after the move; an import is opened
component by component without following a link. Source: ledger and signing, 3.9.
"""

import contextlib
import errno
import os
import secrets
import stat
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from thermite.errors import CommandError
from thermite.schema.offer import COMMAND_SUFFIX, name_text

CAP_BYTES: Final = 256 << 20
"""Most bytes of `done/`, and of `refused/`; the oldest go first (ledger and signing, 3.9)."""
LONGEST_STAY_S: Final = 8 * 86400.0
"""How long a file that no order has used may lie in the inbox: an order is valid for at most 7
days (ledger and signing, 3.8), and its bundles were dropped before it."""
MOST_COMPONENTS: Final = 8
"""Deepest path of an import below `new/`; ours lie directly in it."""
_KEPT_NAME: Final = 120  # characters of a foreign name that are kept: with ours below 255
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class Which(NamedTuple):
    """One file in `new/`, as it was offered."""

    name: bytes
    dev: int
    ino: int


class _Taken(NamedTuple):
    """A file that nobody else reaches; size: bytes."""

    path: Path
    size: int


class Inbox:
    """The inbox of one rig."""

    def __init__(self, inbox: Path) -> None:
        self._inbox = inbox
        self._shelves = {name: Shelf(inbox / name) for name in ("done", "refused")}

    def recover(self) -> None:
        """Put back what a kill left between `new/` and its place."""
        for path in (self._inbox / "work").iterdir():
            self._put_back(path)

    def sweep(self, now_s: float) -> None:
        """Remove what has lain about for longer than any order waits for it; orders stay.

        Args:
            now_s: the wall clock, s since 1970: a file's change time is the drop's.
        """
        for name in ("new", "tmp"):
            with contextlib.suppress(OSError), os.scandir(self._inbox / name) as found:
                for entry in found:
                    if not (name == "new" and entry.name.endswith(COMMAND_SUFFIX)):
                        _remove_if_old(entry, now_s)

    def is_there(self, which: Which) -> bool:
        """Return whether the very file still lies in `new/`."""
        try:
            found = os.lstat(os.fsencode(self._inbox / "new") + b"/" + which.name)
        except OSError:
            return False
        return (found.st_dev, found.st_ino) == (which.dev, which.ino)

    def move(self, which: Which, shelf: Literal["done", "refused"], stamp: str, digest: str) -> str:
        """Move a decided file to a shelf and return its name there, also if it has gone.

        A file that has changed its inode since the offer is not moved: it is another one.

        Args:
            stamp: the time, for the name; digest: of the file or its command.
        """
        target = f"{stamp}-{digest[:12] or 'unread'}-{name_text(which.name)[:_KEPT_NAME]}"
        taken = self._take(which)
        if taken is not None:
            try:
                taken.path.rename(self._inbox / shelf / target)
                self._shelves[shelf].add(target, taken.size)
            except OSError as error:
                sys.stderr.write(f"harness: {target} stays in inbox/work: {error.strerror}\n")
        return target

    def write_reason(self, target: str, reason: Mapping[str, object]) -> None:
        """Write why a file was refused beside it; under its name it is whole."""
        raw = msgspec.json.format(msgspec.json.encode(reason), indent=2) + b"\n"
        name = f"{target}.reason.json"
        half = self._inbox / "refused" / f".half-{secrets.token_hex(8)}"
        try:
            half.write_bytes(raw)
            half.rename(half.with_name(name))
        except OSError as error:
            with contextlib.suppress(OSError):
                half.unlink()
            sys.stderr.write(f"harness: {name} can't be written: {error.strerror}\n")
            return
        self._shelves["refused"].add(name, len(raw))

    @contextlib.contextmanager
    def open_import(self, path: str) -> Iterator[int | None]:
        """Give a descriptor of an import's file, or None while there is none.

        Raises:
            CommandError: `import_path`, it is no plain file with one name.
        """
        descriptor = self._open(path)
        try:
            if descriptor is not None:
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
                    raise CommandError(
                        "import_path",
                        f"{path[:80]!a} is no plain file with one name: drop a copy of the file",
                    )
            yield descriptor
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def remove_import(self, path: str) -> None:
        """Remove an import's file; one that is gone, or can't be removed, stays as it is."""
        *folders, name = path.split("/")
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            here = _enter(stack, self._inbox / "new", folders)
            os.unlink(name, dir_fd=here)

    def _open(self, path: str) -> int | None:
        *folders, name = path.split("/")
        with contextlib.ExitStack() as stack:
            try:
                here = _enter(stack, self._inbox / "new", folders)
                return os.open(name, _FILE, dir_fd=here)
            except FileNotFoundError:
                return None
            except OSError as error:
                if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.ENXIO}:
                    why = "it, or a folder above it, is a link or no plain file"
                else:
                    why = os.strerror(error.errno or 0).lower()
                raise CommandError(
                    "import_path",
                    f"{path[:80]!a} can't be opened: {why}: drop it again, with mode 0644",
                ) from None

    def _take(self, which: Which) -> "_Taken | None":
        """Move the very file out of everybody's reach, or return None when it is another one."""
        if not self.is_there(which):
            return None
        source = self._inbox / "new" / os.fsdecode(which.name)
        held = self._inbox / "work" / f"{secrets.token_hex(8)}-{os.fsdecode(which.name)[-200:]}"
        try:
            source.rename(held)
            found = held.lstat()
        except OSError as error:
            sys.stderr.write(f"harness: {name_text(which.name)} stays: {error.strerror}\n")
            return None
        if (found.st_dev, found.st_ino) == (which.dev, which.ino):
            return _Taken(held, found.st_size)
        self._put_back(held)
        return None

    def _put_back(self, held: Path) -> None:
        """Put a file back under a name that nobody has: its own may be taken meanwhile."""
        with contextlib.suppress(OSError):
            held.rename(self._inbox / "new" / held.name)


class Shelf:
    """A folder of ours with a cap: the oldest files make room for new ones."""

    def __init__(self, folder: Path, cap_bytes: int = CAP_BYTES) -> None:
        self._folder, self._cap_bytes = folder, cap_bytes
        found = [(path.name, path.lstat()) for path in folder.iterdir()]
        found.sort(key=lambda item: item[1].st_mtime_ns)
        self._files = deque((name, stats.st_size) for name, stats in found)
        self._bytes = sum(size for _, size in self._files)

    def add(self, name: str, size: int) -> None:
        """Count a file that lies there now, and remove the oldest ones beyond the cap."""
        self._files.append((name, size))
        self._bytes += size
        while self._bytes > self._cap_bytes and self._files:
            oldest, its_size = self._files.popleft()
            self._bytes -= its_size
            with contextlib.suppress(OSError):
                (self._folder / oldest).unlink()


def _remove_if_old(entry: os.DirEntry[str], now_s: float) -> None:
    with contextlib.suppress(OSError):
        found = entry.stat(follow_symlinks=False)
        if now_s - found.st_ctime > LONGEST_STAY_S and not stat.S_ISDIR(found.st_mode):
            Path(entry.path).unlink()


def import_path_problem(path: str) -> str | None:
    """Return why a path can't be an import's, or None.

    Source: ledger and signing, 3.9, step 12: relative, normalized, inside the inbox.
    """
    parts = path.split("/")
    if not path or "\0" in path or any(part in {"", ".", ".."} for part in parts):
        return f"{path[:80]!a} is no relative, normalized path inside the inbox"
    if len(parts) > MOST_COMPONENTS or len(path) > 1000:  # noqa: PLR2004 (a path, not a document)
        return f"{path[:80]!a} is longer than a path of an import may be"
    if path.endswith(COMMAND_SUFFIX) or not path.isprintable():
        return f"{path[:80]!a} is a command's name, or can't be printed"
    return None


def _enter(stack: contextlib.ExitStack, folder: Path, below: list[str]) -> int:
    here = os.open(folder, _FOLDER)
    stack.callback(os.close, here)
    for part in below:
        here = os.open(part, _FOLDER, dir_fd=here)
        stack.callback(os.close, here)
    return here
