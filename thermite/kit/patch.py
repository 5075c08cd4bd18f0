"""A patch as text between two commits, and what it makes of a tree; nothing is written there."""

import tempfile
from pathlib import Path

from thermite.kit.git import git


def patch_between(repo: Path, before: str, after: str) -> str:
    """Return the git patch from one commit to another, as text that loses nothing.

    A change of a file that is no UTF-8 makes every file's change a binary one.

    Raises:
        GitError: a commit is missing, or the patch is larger than a call may print.
    """
    words = ("--binary", "--no-ext-diff", "--no-textconv", before, after, "--")
    try:
        return git(repo, "diff", *words).decode()
    except UnicodeDecodeError:
        with tempfile.NamedTemporaryFile(prefix="thermite-attributes-") as attributes:
            attributes.write(b"* -diff\n")
            attributes.flush()
            setting = f"core.attributesFile={attributes.name}"
            return git(repo, "-c", setting, "diff", *words).decode("ascii")


def tree_after(repo: Path, base: str, patch: bytes) -> str:
    """Return the id of the tree that a git patch makes of another tree.

    Args:
        repo: has the tree; new objects go into a folder that lives as long as the call.
        base: the tree's id.
        patch: as `git diff --binary` writes it; empty: no change.

    Raises:
        GitError: the patch is none, or does not fit.
    """
    objects = git(repo, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    with tempfile.TemporaryDirectory(prefix="thermite-patch-") as folder:
        env = {
            "GIT_INDEX_FILE": f"{folder}/index",
            "GIT_OBJECT_DIRECTORY": folder,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": objects.decode().rstrip("\n"),
        }
        git(repo, "read-tree", base, env=env)
        if patch:
            exact = ("--cached", "--whitespace=nowarn", "--no-ignore-whitespace")
            git(repo, "apply", *exact, "-", stdin=patch, env=env)
        return git(repo, "write-tree", env=env).decode("ascii").strip()
