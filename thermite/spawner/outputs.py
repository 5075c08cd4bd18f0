"""Copying a stage's outputs out of its work folder, after nothing of the stage is left.

Each name is opened relative to its folder's descriptor, never through a link and never
waiting, and judged by what was opened. What is copied is a new file of the harness's own,
hashed on the way. Source: Kit manifest, Outputs; isolation, rows 7 and 12 to 17.
"""

import contextlib
import errno
import hashlib
import json
import os
import re
import stat
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from .tree import FOLDER, empty

_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK: Final = 1 << 20
_HOLE: Final = bytes(_CHUNK)
_MOST_PROBLEMS: Final = 100
_MOST_NAMES: Final = 20_000
"""Names of a folder that are looked at for another spelling: more than may be collected."""

_KINDS: Final = {
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


_PRINTED: Final = frozenset(range(0x20, 0x7F)) - {ord("\\")}
_PLAIN: Final = re.compile(r"[ -\[\]-~]*")
"""What needs no escape."""


@dataclass(frozen=True)
class Order:
    """What to collect; owner: the uid that every output must have.

    links: symbolic links below what is collected are told with their targets, not refused.
    A path that ends in `/` means what is inside that folder: the folder itself counts
    neither as an entry nor as a level; `.` means the whole work folder.
    """

    paths: Sequence[str]
    owner: int
    entries: int
    levels: int
    total_bytes: int
    links: bool = False


@dataclass
class Report:
    """What came of it; a problem is a path, a word for its kind, and a number."""

    files: list[dict[str, Any]] = field(default_factory=list)
    problems: list[tuple[str, str, int]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    links: dict[str, str] = field(default_factory=dict)
    entries: int = 0
    bytes_left: int = 0
    copied: set[str] = field(default_factory=set)
    is_over: bool = False

    def refuse(self, path: str, kind: str, number: int = 0) -> None:
        """Note a problem; with the hundredth, or a limit, there is no use in going on."""
        if not self.is_over:
            self.problems.append((escaped(path), kind, number))
            is_limit = kind in {"entries", "bytes"}
            self.is_over = is_limit or len(self.problems) >= _MOST_PROBLEMS


def escaped(path: str) -> str:
    r"""Return a path's bytes as ASCII text: backslash and what can't be printed as \xNN."""
    if _PLAIN.fullmatch(path):
        return path
    return "".join(
        chr(byte) if byte in _PRINTED else f"\\x{byte:02x}" for byte in os.fsencode(path)
    )


def collect(order: Order, fds: Sequence[int], say: Callable[[bytes], None]) -> None:
    """Copy the outputs; fds: work folder, target folder, memory file for the report."""
    os.umask(0)
    source, target, file = fds
    report = Report(bytes_left=order.total_bytes)
    if os.listdir(target):
        raise OSError(errno.ENOTEMPTY, "the folder to collect into is not empty")
    for path in order.paths:
        if not report.is_over:
            _declared(order, report, source, target, path)
    if report.problems or report.missing:
        empty(target)
    lines = json.dumps(
        {
            "files": report.files,
            "problems": report.problems,
            "missing": report.missing,
            "links": report.links,
        }
    ).encode()
    view = memoryview(lines)
    while view:
        view = view[os.write(file, view) :]
    say(b"done")


def _other_spelling(folder: int, name: str) -> str | None:
    """Return a name in a folder that is another one's other Unicode form, e.g. of an accent.

    Nothing is taken for it: two files of both forms can lie side by side (known faults, P8).
    """
    if name.isascii():
        return None
    wanted = unicodedata.normalize("NFC", name)
    with os.scandir(folder) as listing:
        for entry in islice(listing, _MOST_NAMES):
            if unicodedata.normalize("NFC", entry.name) == wanted:
                return entry.name
    return None


def _declared(order: Order, report: Report, source: int, target: int, path: str) -> None:
    """Collect one declared path: find it by its components, then copy it with what is below."""
    if path == ".":
        for name in sorted(os.listdir(source)):
            _one(order, report, source, target, name, name, 1)
        return
    *parents, last = path.rstrip("/").split("/")
    inside = path.endswith("/")
    from_fd, to_fd = os.dup(source), os.dup(target)
    try:
        for depth, part in enumerate(parents, 1):
            deeper = _open_parent(order, report, from_fd, part, "/".join(parents[:depth]))
            if deeper is None:
                return
            if deeper < 0:
                report.missing.append(escaped(path))
                return
            os.close(from_fd)
            from_fd = deeper
            deeper = _made(part, to_fd)
            os.close(to_fd)
            to_fd = deeper
        level = 0 if inside else len(parents) + 1
        found = _one(order, report, from_fd, to_fd, last, path.rstrip("/"), level)
        if found is False:
            other = _other_spelling(from_fd, last)
            beside = f" (there is {escaped(other)}, which only looks the same)" if other else ""
            report.missing.append(escaped(path) + beside)
    finally:
        os.close(from_fd)
        os.close(to_fd)


def _made(name: str, parent: int) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=parent)
    return os.open(name, FOLDER, dir_fd=parent)


def _open_parent(order: Order, report: Report, here: int, part: str, shown: str) -> int | None:
    """Open a folder on the way: its descriptor, -1 when missing, None when refused."""
    if part in {"", ".", ".."}:
        report.refuse(shown, "path")
        return None
    try:
        fd = _opened(order, here, part)
    except FileNotFoundError:
        return -1
    except OSError as error:
        _refuse_unopened(report, here, part, shown, error)
        return None
    if not stat.S_ISDIR(os.fstat(fd).st_mode):
        os.close(fd)
        return -1
    return fd


def _opened(order: Order, here: int, name: str) -> int:
    """Open one entry; our own that can't be read is made readable first (level none)."""
    try:
        return os.open(name, _OPEN, dir_fd=here)
    except PermissionError:
        if order.owner != os.geteuid():
            raise
        found = os.stat(name, dir_fd=here, follow_symlinks=False)
        if not (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
            raise
        os.chmod(name, stat.S_IRWXU, dir_fd=here)
        return os.open(name, _OPEN, dir_fd=here)


def _refuse_unopened(report: Report, here: int, name: str, shown: str, error: OSError) -> None:
    """Say why an entry could not be opened: a link, a socket, or what the kernel says."""
    try:
        kind = stat.S_IFMT(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode)
    except OSError:
        kind = 0
    report.refuse(shown, _KINDS.get(kind, "unreadable"), error.errno or 0)


def _one(  # noqa: PLR0917 - the state of one step of the walk
    order: Order, report: Report, here: int, into: int, name: str, shown: str, level: int
) -> bool:
    """Collect one entry with everything below it; false when it is not there."""
    stack = [(here, into, iter((name,)), shown, level)]
    found = False
    try:
        while stack and not report.is_over:
            folder, target, names, base, depth = stack[-1]
            entry = next(names, None)
            if entry is None:
                stack.pop()
                if folder != here:
                    os.close(folder)
                    os.close(target)
                continue
            path = base if folder == here else f"{base}/{entry}"
            try:
                fd = _opened(order, folder, entry)
            except FileNotFoundError:
                continue
            except OSError as error:
                found = True
                if not (order.links and _told_link(order, report, folder, entry, path)):
                    _refuse_unopened(report, folder, entry, path, error)
                continue
            found = True
            deeper = _take(order, report, fd, target, entry, path, depth)
            if deeper is not None:
                stack.append((fd, deeper, iter(sorted(os.listdir(fd))), path, depth + 1))
    finally:
        for folder, target, *_ in stack:
            if folder != here:
                os.close(folder)
                os.close(target)
    return found


def _told_link(order: Order, report: Report, here: int, name: str, shown: str) -> bool:
    """Tell a symbolic link with its target, which nobody follows; false: it is none."""
    try:
        target = os.readlink(name, dir_fd=here)
    except OSError:
        return False
    report.entries += 1
    if report.entries > order.entries:
        report.refuse(shown, "entries", order.entries)
    report.links[escaped(shown)] = escaped(target)
    return True


def _take(  # noqa: PLR0917 - the state of one step of the walk
    order: Order, report: Report, fd: int, target: int, name: str, path: str, level: int
) -> int | None:
    """Judge and copy one opened entry; a folder's copy is returned, opened, to go into."""
    found = os.fstat(fd)
    is_folder = stat.S_ISDIR(found.st_mode)
    problem = _problem(order, report, found, level)
    if problem is not None:
        report.refuse(path, *problem)
    elif is_folder:
        return _made(name, target)
    elif path not in report.copied:  # outputs may be declared inside one another
        report.copied.add(path)
        report.files.append(_copied(report, fd, found, target, name, path))
    os.close(fd)
    return None


def _problem(
    order: Order, report: Report, found: os.stat_result, level: int
) -> tuple[str, int] | None:
    report.entries += level > 0
    if report.entries > order.entries:
        return "entries", order.entries
    if level > order.levels:
        return "levels", order.levels
    if found.st_uid != order.owner:
        return "owner", found.st_uid
    return None if stat.S_ISDIR(found.st_mode) else _problem_of_file(order, report, found)


def _problem_of_file(order: Order, report: Report, found: os.stat_result) -> tuple[str, int] | None:
    kind = stat.S_IFMT(found.st_mode)
    if kind != stat.S_IFREG:
        return _KINDS.get(kind, "kind"), 0
    if found.st_nlink != 1:
        return "hard_link", found.st_nlink
    return ("bytes", order.total_bytes) if found.st_size > report.bytes_left else None


def _copied(  # noqa: PLR0917 - one file's copy
    report: Report, fd: int, found: os.stat_result, target: int, name: str, path: str
) -> dict[str, Any]:
    """Copy at most the size that was judged into a new file and hash what is written."""
    mode = 0o555 if found.st_mode & 0o111 else 0o444
    left = found.st_size
    copy = os.open(name, _CREATE, mode, dir_fd=target)
    try:
        digest = hashlib.sha256()
        while left and (chunk := os.read(fd, min(_CHUNK, left))):
            left -= len(chunk)
            digest.update(chunk)
            _write(copy, chunk)
        os.ftruncate(copy, found.st_size - left)
    finally:
        os.close(copy)
    size = found.st_size - left
    report.bytes_left -= size
    return {"path": escaped(path), "mode": mode, "size": size, "sha256": digest.hexdigest()}


def _write(copy: int, chunk: bytes) -> None:
    """Write a chunk; one of zeros is a hole in the copy, as it was in a sparse file (P5)."""
    if chunk == _HOLE:
        os.lseek(copy, len(chunk), os.SEEK_CUR)
        return
    while chunk:
        chunk = chunk[os.write(copy, chunk) :]
