"""A stage copy: files of the harness's own that one slot may read, only while granted."""

import contextlib
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from thermite.errors import InfrastructureError

_CLOSED: Final = 0o700
_GRANTED: Final = 0o750
_FOLDER: Final = 0o555
_OPEN_FOLDER: Final = 0o755
_CHUNK: Final = 1 << 20
_HOLE: Final = bytes(_CHUNK)


class Copy:
    """One folder below the stage root; its group is the slot's, its owner the harness."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._grants = 0
        self._ways: set[Path] = set()
        self._lock = threading.Lock()

    @property
    def path(self) -> Path:
        """Absolute path; its length is the same for every copy."""
        return self._path

    def add(self, source: Path, name: str, *, links: bool = False) -> None:
        """Copy a file or folder in as `name`: folders 0555, files 0444, or 0555 if executable.

        Args:
            links: symbolic links below the folder are made again as they are; whoever asks
                knows that none of them leads out of it.

        Raises:
            InfrastructureError: the source holds something else than plain files and folders.
        """
        target = self._new(name)
        found = source.lstat()
        if stat.S_ISDIR(found.st_mode):
            self._add_folder(source, target, links=links)
        else:
            _copy_file(source, target)

    def write(self, name: str, content: bytes, *, executable: bool = False) -> None:
        """Write a file of these bytes into the copy."""
        target = self._new(name)
        target.write_bytes(content)
        target.chmod(0o555 if executable else 0o444)

    @contextlib.contextmanager
    def granted(self) -> Iterator[None]:
        """Let the slot's group enter and list it, for the length of one run."""
        with self._lock:
            self._grants += 1
            for way in self._ways:
                way.chmod(_FOLDER)
            self._path.chmod(_GRANTED)
        try:
            yield
        finally:
            with self._lock:
                self._grants -= 1
                if not self._grants:
                    self._path.chmod(_CLOSED)

    def _new(self, name: str) -> Path:
        """Return the path of a new entry, with the folders that lead to it made."""
        parts = name.split("/")
        if any(part in {"", ".", ".."} for part in parts):
            raise InfrastructureError(f"stage copy: {name!r} is not a plain relative path")
        here = self._path
        for part in parts[:-1]:
            here /= part
            with contextlib.suppress(FileExistsError):
                here.mkdir()
                self._ways.add(here)
            if here in self._ways:
                here.chmod(_OPEN_FOLDER)  # whatever the umask
        return here / parts[-1]

    def _add_folder(self, source: Path, target: Path, *, links: bool) -> None:
        target.mkdir(0o755)
        stack = [(source, target)]
        made = [target]
        while stack:
            here, there = stack.pop()
            for entry in sorted(os.scandir(here), key=lambda one: one.name):
                deeper = there / entry.name
                if entry.is_dir(follow_symlinks=False):
                    deeper.mkdir(0o755)
                    made.append(deeper)
                    stack.append((Path(entry.path), deeper))
                elif links and entry.is_symlink():
                    deeper.symlink_to(os.readlink(entry.path))  # noqa: PTH115 (its bytes)
                else:
                    _copy_file(Path(entry.path), deeper)
        for folder in made:
            folder.chmod(0o555)


def _copy_file(source: Path, target: Path) -> None:
    """Copy one plain file, never through a link and never waiting."""
    try:
        fd = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InfrastructureError(f"stage copy: {source}: {error.strerror}") from None
    with os.fdopen(fd, "rb") as read:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            raise InfrastructureError(f"stage copy: {source} is not a plain file")
        with target.open("xb") as write:
            for chunk in iter(lambda: read.read(_CHUNK), b""):
                # Of a sparse file the copy has no more blocks than it has itself.
                write.seek(_CHUNK, os.SEEK_CUR) if chunk == _HOLE else write.write(chunk)
            write.truncate()
            os.fchmod(write.fileno(), 0o555 if mode & 0o111 else 0o444)
