"""Unpacking entries into a slot's work folder as the slot's own user.

One entry on the pipe: a kind letter, the path's length (u32) and the data's length (u64),
little-endian, then path and data. Every component is opened by descriptor and never
through a link, and nothing that exists is written over.
"""

import os
import struct
from collections.abc import Callable, Sequence
from typing import Final

from .tree import open_folder

HEADER: Final = struct.Struct("<cIQ")
_MOST_PATH: Final = 4096
_MOST_LEVELS: Final = 128
_CHUNK: Final = 1 << 20
_MOST_OPEN: Final = 128
_FOLDER_MODE: Final = 0o755
_MODE: Final = {b"f": 0o644, b"x": 0o755}


class BadEntryError(Exception):
    """An entry that can't be placed; the text names it."""


def place(fds: Sequence[int], say: Callable[[bytes], None]) -> None:
    """Unpack what comes through the pipe; fds: folder, pipe.

    Raises:
        BadEntryError: a path is not plain, or the stream is broken.
        OSError: the file system refused.
    """
    os.umask(0)
    folder, pipe = fds
    count = 0
    folders = _Folders(folder)
    with open(pipe, "rb", buffering=_CHUNK, closefd=False) as stream:
        while head := stream.read(HEADER.size):
            if len(head) != HEADER.size:
                raise BadEntryError("the stream ends inside an entry's header")
            kind, path_size, size = HEADER.unpack(head)
            if path_size > _MOST_PATH:
                raise BadEntryError(f"a path of {path_size} bytes is over {_MOST_PATH}")
            path = stream.read(path_size)
            _put(folders, kind, path, size, stream.read)
            count += 1
    say(str(count).encode())


class _Folders:
    """The folders below one, made if need be; some stay open, as most entries share one."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._open: dict[tuple[str, ...], int] = {}

    def get(self, names: tuple[str, ...]) -> int:
        """Return a folder's descriptor, which is this object's to close."""
        if not names:
            return self._top
        if names not in self._open:
            if len(self._open) >= _MOST_OPEN:
                os.close(self._open.pop(next(iter(self._open))))
            self._open[names] = self._opened(names)
        return self._open[names]

    def _opened(self, names: tuple[str, ...]) -> int:
        here = os.dup(self._top)
        for name in names:
            _make_folder(name, here)
            try:
                deeper = open_folder(name, at=here)
            finally:
                os.close(here)
            here = deeper
        return here


def _put(
    folders: _Folders, kind: bytes, path: bytes, size: int, read: Callable[[int], bytes]
) -> None:
    parts = path.split(b"/")
    if any(part in {b"", b".", b".."} or b"\0" in part for part in parts):
        raise BadEntryError(f"{path!r} is not a plain relative path")
    if len(parts) > _MOST_LEVELS:
        raise BadEntryError(f"{path[:80]!r}… is nested deeper than {_MOST_LEVELS} levels")
    names = [os.fsdecode(part) for part in parts]
    here = folders.get(tuple(names[:-1]))
    try:
        if kind == b"d":
            _make_folder(names[-1], here)
        elif kind == b"l":
            os.symlink(read(min(size, _MOST_PATH)), os.fsencode(names[-1]), dir_fd=here)
        elif kind in _MODE:
            _write(names[-1], here, _MODE[kind], size, read)
        else:
            raise BadEntryError(f"{kind!r} is not a kind of entry")
    except FileExistsError:
        raise BadEntryError(f"{path!r} is there already") from None


def _make_folder(name: str, here: int) -> None:
    try:
        os.mkdir(name, _FOLDER_MODE, dir_fd=here)
    except FileExistsError:
        os.close(open_folder(name, at=here))  # a link or a file there is an error


def _write(name: str, here: int, mode: int, size: int, read: Callable[[int], bytes]) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(name, flags, mode, dir_fd=here)
    try:
        while size:
            chunk = read(min(size, _CHUNK))
            if not chunk:
                raise BadEntryError(f"the stream ends inside {name!r}")
            size -= len(chunk)
            view = memoryview(chunk)
            while view:
                view = view[os.write(fd, view) :]
    finally:
        os.close(fd)
