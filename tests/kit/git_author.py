"""Write real git repositories as an author would, and as no author should."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

CLOSED = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_AUTHOR_DATE": "1000000000 +0000",
    "GIT_COMMITTER_DATE": "1000000000 +0000",
}


def plain_git(repo: Path, *args: str, stdin: bytes = b"") -> str:
    """Run git as an author would, from nobody's configuration; return its output."""
    done = subprocess.run(
        ["git", "-C", str(repo), "-c", "safe.directory=*", *args],
        env=CLOSED,
        input=stdin,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode().strip()


def commit_files(repo: Path, files: Mapping[str, bytes]) -> str:
    """Write files, commit all of the folder, return the commit's id."""
    for name, data in files.items():
        path = repo / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    plain_git(repo, "add", "-A", "-f")
    plain_git(repo, "commit", "-q", "--allow-empty", "-m", "x")
    return plain_git(repo, "rev-parse", "HEAD")


def raw_tree(repo: Path, entries: list[tuple[str, bytes, str]]) -> str:
    """Store a tree object byte by byte, whatever git thinks of it; return its id."""
    raw = b"".join(
        mode.encode() + b" " + name + b"\0" + bytes.fromhex(object_id)
        for mode, name, object_id in entries
    )
    return plain_git(repo, "hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=raw)


def blob(repo: Path, data: bytes) -> str:
    """Store a blob; return its id."""
    return plain_git(repo, "hash-object", "-w", "--stdin", stdin=data)


def commit_tree(repo: Path, tree: str, *parents: str) -> str:
    """Commit a tree; return the commit's id."""
    return plain_git(repo, "commit-tree", tree, "-m", "x", *(w for p in parents for w in ("-p", p)))
