"""What was changed in a folder and is in no commit: it is not sent, which may surprise.

The repository may be somebody else's, and git runs its filters as soon as it compares a file: so
git tells only what HEAD and its index hold, and files are compared here, by their bytes. One that
a filter or a rule for line ends may turn into something else is left out, as is what git doesn't
know yet, which may be anything, the contract too. Source: git-ls-files(1), git-check-attr(1).
"""

import hashlib
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from thermite.kit.git import GitError, git

_MOST_LISTED: Final = 16 << 20
_MOST_S: Final = 10.0
_MOST_BYTES: Final = 256 << 20
"""What is read of a project, a second's work (our figure); in a larger one nothing is said."""
_OPEN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Whatever has come in a file's place meanwhile, a pipe too, holds nobody up."""
_NAMED: Final = 3
_HASHES: Final = {40: hashlib.sha1, 64: hashlib.sha256}
_MODULE: Final = "160000"
_TURNS: Final = ("filter", "ident", "text", "eol", "crlf", "working-tree-encoding")
"""Attributes by which a file's bytes are not those that git keeps of it."""
_UNSET: Final = {"unspecified", "unset"}


def uncommitted_warnings(kind: str, repo: Path, but: Path) -> list[str]:
    """Return a warning where files of a repository's folder differ from its HEAD.

    Args:
        kind: `project` or `kit`; repo: the repository's root; a bare one has no such files;
        but: the contract's file, which is sent as it stands.
    """
    names = [name for name in changed_files(repo) if (repo / name).resolve() != but.resolve()]
    if not names:
        return []
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    said = ", ".join(f"{name!a}" for name in names[:_NAMED])
    whose = f"the {kind} in {repo} has changes that are in no commit, and they are not sent"
    return [f"{whose}: {said}{more}: commit them first, if they are meant"]


def changed_files(repo: Path) -> list[str]:
    """Return which files that git knows differ from HEAD; none where it can't be told in time."""
    if not (repo / ".git").exists():
        return []
    try:
        head = _listed(repo, 2, "ls-tree", "-r", "--full-tree", "HEAD")
        index = _listed(repo, 1, "ls-files", "--stage")
        staged = {path for path, _ in head.items() ^ index.items()}
        differing = set(_differing(repo, head)) - staged
        return sorted(staged | (differing - _turned(repo, differing)))
    except (GitError, _TooMuchError):
        return []


class _TooMuchError(Exception):
    """There is more than is worth reading for a warning."""


def _git(repo: Path, command: str, *args: str, stdin: bytes = b"") -> bytes:
    return git(repo, command, *args, stdin=stdin, timeout_s=_MOST_S, most_output=_MOST_LISTED)


def _listed(repo: Path, column: int, command: str, *args: str) -> dict[str, tuple[str, str]]:
    """Return path to mode and blob, which stands in this column; modules are left out."""
    found = {}
    for line in _git(repo, command, "-z", *args, "--").split(b"\0")[:-1]:
        told, _, path = line.partition(b"\t")
        words = told.decode("ascii").split()
        if words[0] != _MODULE:
            found[os.fsdecode(path)] = words[0], words[column]
    return found


def _differing(repo: Path, listed: dict[str, tuple[str, str]]) -> Iterable[str]:
    """Yield the files whose bytes or mode are others than listed, or that are gone."""
    left = _MOST_BYTES
    for path, (mode, blob) in listed.items():
        found = _found(repo / path, left)
        if found is None:
            yield path
            continue
        left -= len(found[1])
        hashed = _HASHES[len(blob)](b"blob %d\0" % len(found[1]) + found[1]).hexdigest()
        if (mode, blob) != (found[0], hashed):
            yield path


def _found(path: Path, most: int) -> tuple[str, bytes] | None:
    """Return mode and bytes as git would keep them, None where there is no such file or link.

    Raises:
        _TooMuchError: it has more bytes than these.
    """
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode):
            return "120000", os.fsencode(path.readlink())
        if not stat.S_ISREG(found.st_mode):
            return None
        if found.st_size > most:
            raise _TooMuchError
        with os.fdopen(os.open(path, _OPEN), "rb") as file:
            return "100755" if found.st_mode & stat.S_IXUSR else "100644", file.read(most)
    except OSError:
        return None


def _turned(repo: Path, paths: Iterable[str]) -> set[str]:
    """Return those of some files whose bytes are not what git keeps of them."""
    names = b"\0".join(map(os.fsencode, paths))
    told = (
        _git(repo, "check-attr", "--cached", "--stdin", "-z", *_TURNS, stdin=names)
        if names
        else b""
    )
    words = told.split(b"\0")
    return {
        os.fsdecode(path)
        for path, value in zip(words[::3], words[2::3], strict=False)
        if value.decode("utf-8", "replace") not in _UNSET
    }
