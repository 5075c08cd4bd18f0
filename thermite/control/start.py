"""A project to start from: an example's first version as a git repository, and a contract."""

import shutil
from pathlib import Path
from typing import Final, NamedTuple

from thermite.control.new_folder import filled
from thermite.errors import UsageError
from thermite.kit.git import git
from thermite.schema.ids import CommitId
from thermite.shipped import shipped

KIT_OF: Final = {"matmul": "demo-cpu", "matmul-goals": "demo-cpu"}
"""The shipped kit that judges each example, and whose known base is the project."""

_WHO: Final = {
    "GIT_AUTHOR_NAME": "thermite",
    "GIT_AUTHOR_EMAIL": "thermite@localhost",
    "GIT_COMMITTER_NAME": "thermite",
    "GIT_COMMITTER_EMAIL": "thermite@localhost",
    "GIT_AUTHOR_DATE": "@0 +0000",  # same example, same commit, on every machine
    "GIT_COMMITTER_DATE": "@0 +0000",
}


class Started(NamedTuple):
    """What was made: the project's folder and first commit, its contract, the kit to judge it."""

    project: Path
    commit: CommitId
    contract: Path
    kit: Path


def start_project(example: str, folder: Path) -> Started:
    """Make a project from an example in a folder that is empty or not there yet.

    Raises:
        UsageError: no such example, or the folder holds something.
    """
    if example not in KIT_OF:
        raise UsageError(f"there is no example {example!r}: there are {', '.join(KIT_OF)}")
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: name a folder that is empty or not there yet")
    if folder.is_dir() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty: name a folder that is empty or not there yet")
    kit = shipped(f"kits/{KIT_OF[example]}")
    with filled(folder):
        for source in (kit / "candidates" / "base", shipped(f"examples/{example}")):
            shutil.copytree(source, folder, dirs_exist_ok=True, copy_function=shutil.copyfile)
        commit = _first_commit(folder, example)
    return Started(folder, commit, folder / "contract.toml", kit)


def _first_commit(folder: Path, example: str) -> CommitId:
    """Make the folder a repository with all of it in one commit; nobody's configuration counts."""
    (folder / ".git").mkdir()
    place = {"GIT_WORK_TREE": str(folder.absolute())}
    git(folder, "init", "--quiet", "--template=", "--initial-branch=main")
    git(folder, "config", "core.bare", "false")  # a named --git-dir makes git think otherwise
    git(folder, "add", "--all", "--", ":/", env=place)
    git(folder, "commit", "--quiet", "-m", f"{example}: where we start", env=place | _WHO)
    return CommitId(git(folder, "rev-parse", "HEAD").decode("ascii").strip())
