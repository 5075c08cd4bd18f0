"""Turn a plain folder into a commit: same bytes, same id, on every machine.

Author, committer and message are fixed, the time is 0 and the tree is sorted by git.
Nothing in the folder is interpreted: no attributes, no ignore file, no filter.
Source: the design page on the contract, Completing a contract.
"""

import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final, Literal, TypeAlias

from thermite.errors import KitError
from thermite.kit.git import git, make_repository
from thermite.schema.ids import CommitId

Kind: TypeAlias = Literal["missing", "file", "folder", "other"]

FOLDER_REF: Final = "refs/thermite/folder"
"""The ref that keeps the newest such commit from being collected."""
MOST_ENTRIES: Final = 49_999
"""Most files and folders: from 50,000 on a stage is over its disk limit (Kit manifest, Limits)."""
MOST_LEVELS: Final = 128
"""Folders that nest so deep are over the disk limit of a stage (Kit manifest, Limits)."""
MOST_BYTES: Final = 1 << 30
"""Most bytes of all files together; larger things are model files (the contract's `models`)."""

_WHO: Final = "thermite <thermite@localhost> 0 +0000"
_MESSAGE: Final = "A folder as it stands\n"


def is_linked(folder: Path, path: str) -> bool:
    """Return whether a path in a folder is a link, or lies behind one; the folder may be one."""
    parts = Path(path)
    return any((folder / one).is_symlink() for one in (parts, *parts.parents) if one.parts)


def kind_of(path: Path) -> Kind:
    """Return what lies at a path itself; what lies behind a link, or can't be seen, is `other`."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "missing"
    except OSError:
        return "other"
    return "folder" if stat.S_ISDIR(mode) else "file" if stat.S_ISREG(mode) else "other"


def entries_below(top: Path, *, most: int) -> Iterator[Path]:
    """Yield what lies below a folder, by name, through no link, no repository and in bounds.

    What is nested deeper than any stage may have it is not looked at.
    """
    waiting = [(top, 0)]
    count = 0
    while waiting:
        here, level = waiting.pop()
        try:
            with os.scandir(here) as found:
                children = sorted(islice(found, most), key=lambda one: one.name)
        except OSError:
            continue  # what can't be read is nobody's to doubt
        for child in children:
            count += 1
            if count > most:
                return
            path = here / child.name
            yield path
            is_own = level or child.name != ".git"
            if is_own and level + 1 < MOST_LEVELS and child.is_dir(follow_symlinks=False):
                waiting.append((path, level + 1))


def commit_of_folder(store: Path, folder: Path) -> CommitId:
    """Commit a folder as it stands into a bare repository, made if need be; return the id.

    Raises:
        KitError: something in it is no file, folder or link, has a name git can't carry,
            is a repository of its own, or is too much.
    """
    problems: list[str] = []
    stream = _stream(folder, problems)
    if problems:
        raise KitError("; ".join(problems))
    make_repository(store)
    said = git(store, "fast-import", "--quiet", "--force", "--done", stdin=stream)
    return CommitId(said.decode("ascii").strip())


def _stream(folder: Path, problems: list[str]) -> bytes:
    """Return the fast-import stream of one commit with all files of the folder."""
    parts = [
        f"commit {FOLDER_REF}\nmark :1\nauthor {_WHO}\ncommitter {_WHO}\n".encode(),
        _counted(_MESSAGE.encode()),
        b"deleteall\n",
    ]
    size = 0
    count = 0
    for path, found in _walk(folder, problems):
        count += 1
        if count > MOST_ENTRIES:
            problems.append(f"more than {MOST_ENTRIES} files and folders")
            return b""
        if stat.S_ISDIR(found.st_mode):
            continue
        data, mode = _content(folder / path, found)
        size += len(data)
        if size > MOST_BYTES:
            problems.append(f"more than {MOST_BYTES >> 20} MiB: large files belong in models")
            return b""
        parts += [b"M %s inline %s\n" % (mode, _quoted(os.fsencode(path))), _counted(data)]
    parts.append(b"get-mark :1\ndone\n")
    return b"".join(parts)


def _walk(root: Path, problems: list[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every file, link and folder below root, by name, never through a link."""
    waiting = [""]
    while waiting:
        here = waiting.pop()
        with os.scandir(root / here) as listing:
            for entry in sorted(listing, key=lambda one: one.name):
                path = f"{here}/{entry.name}" if here else entry.name
                found = entry.stat(follow_symlinks=False)
                problem = _problem(entry.name, path, found)
                if problem:
                    problems.append(problem)
                    continue
                yield path, found
                if stat.S_ISDIR(found.st_mode):
                    waiting.append(path)


def _problem(name: str, path: str, found: os.stat_result) -> str | None:
    shown = ascii(path)[1:-1]
    if name.lower() == ".git":
        return f"{shown} is a git repository inside the folder: take it out"
    if "\n" in name or "\r" in name:
        return f"{shown} has a line break in its name: rename it"
    kind = stat.S_IFMT(found.st_mode)
    if kind not in {stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK}:
        return f"{shown} is not a file, a folder or a link: take it out"
    return None


def _content(path: Path, found: os.stat_result) -> tuple[bytes, bytes]:
    if stat.S_ISLNK(found.st_mode):
        return os.fsencode(path.readlink()), b"120000"
    mode = b"100755" if found.st_mode & stat.S_IXUSR else b"100644"
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags), "rb") as file:
        return file.read(MOST_BYTES + 1), mode


def _counted(data: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(data), data)


def _quoted(path: bytes) -> bytes:
    """Return a path as fast-import reads it whatever is in it: in quotes, octal escapes."""
    plain = b"/._-+,=@%" + b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    return b'"%s"' % b"".join(bytes([byte]) if byte in plain else b"\\%03o" % byte for byte in path)
