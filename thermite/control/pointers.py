"""Git LFS pointers: a rig gets the bytes that a commit holds, and those are not the content."""

import re
from pathlib import Path
from typing import Final

from thermite.kit.git import git
from thermite.schema.ids import CommitId

# Git LFS specification, "The Pointer": this line first, at most 1,024 bytes in all.
_FIRST: Final = b"version https://git-lfs.github.com/spec/v1\n"
_SIZE: Final = re.compile(rb"^size ([0-9]{1,18})$", re.MULTILINE)
_LEAST_BYTES: Final = 100
_MOST_BYTES: Final = 1024
_LOOKED_AT: Final = 20_000  # small files: more than most projects have, read in a second or two
_NAMED: Final = 3  # pointers that are named one by one; the others are counted


def pointer_warnings(kind: str, repo: Path, commit: CommitId) -> list[str]:
    """Return a warning for each of the first Git LFS pointers in a commit.

    Args:
        kind: what the commit is, for the text: `kit` or `project`.
        repo: a repository that holds it.
        commit: the commit.
    """
    small = _small_files(git(repo, "ls-tree", "-r", "-l", "-z", commit))
    found = _pointers(repo, small[:_LOOKED_AT])
    warnings = [
        f"{kind}: {path} is a Git LFS pointer ({size / 1e6:.1f} MB), and a rig gets the pointer,"
        " not the content: commit the file itself, or send large data with --model"
        for path, size in found[:_NAMED]
    ]
    more = len(found) - _NAMED
    return [*warnings, f"{kind}: {more} more Git LFS pointers"] if more > 0 else warnings


def _small_files(listing: bytes) -> list[tuple[str, str]]:
    """Return path and object id of every file that may be a pointer by its size."""
    found = []
    for line in listing.split(b"\0"):
        head, _, path = line.partition(b"\t")
        parts = head.split()
        is_file = len(parts) == 4 and parts[1] == b"blob" and parts[3].isdigit()  # noqa: PLR2004 (ls-tree -l)
        if is_file and _LEAST_BYTES <= int(parts[3]) <= _MOST_BYTES:
            found.append((ascii(path.decode("utf-8", "backslashreplace"))[1:-1], parts[2].decode()))
    return found


def _pointers(repo: Path, small: list[tuple[str, str]]) -> list[tuple[str, int]]:
    """Return path and real size of those files that are pointers."""
    ids = "".join(f"{object_id}\n" for _, object_id in small).encode()
    said = git(repo, "cat-file", "--batch", stdin=ids) if small else b""
    found = []
    at = 0
    for path, _ in small:
        end = said.index(b"\n", at)
        size = int(said[at:end].split()[2])
        content = said[end + 1 : end + 1 + size]
        at = end + 1 + size + 1
        real = _SIZE.search(content)
        if content.startswith(_FIRST) and real is not None:
            found.append((path, int(real.group(1))))
    return found
