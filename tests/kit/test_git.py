"""Repositories that a rig keeps: whole when they have a name, and none of a killed git's locks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from thermite.errors import InfrastructureError
from thermite.kit.folder import commit_of_folder
from thermite.kit.git import git, is_repository, make_repository, mend_repositories

ROOT = Path(__file__).parents[2]
KILLED = "#!/bin/sh\n: > HEAD.lock\nkill -9 $PPID\n"
MAKE = (
    "import sys, pathlib; from thermite.kit.git import make_repository as m; m(pathlib.Path({!r}))"
)


@pytest.fixture
def repos(tmp_path: Path) -> Path:
    folder = tmp_path / "repos"
    folder.mkdir()
    return folder


@pytest.fixture
def kept(repos: Path, tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a").write_text("a")
    commit_of_folder(repos / "kit-a.git", tmp_path / "files")
    return repos / "kit-a.git"


def test_a_process_that_dies_in_git_init_leaves_no_repository(repos: Path, tmp_path: Path) -> None:
    fake = tmp_path / "bin" / "git"
    fake.parent.mkdir()
    fake.write_text(KILLED)
    fake.chmod(0o755)
    path = repos / "kit-a.git"
    env = {**os.environ, "PATH": f"{fake.parent}:{os.environ['PATH']}"}
    argv = [sys.executable, "-c", MAKE.format(str(path))]
    assert subprocess.run(argv, cwd=ROOT, env=env, check=False).returncode == -9
    assert not path.exists()
    assert list(repos.iterdir())
    mend_repositories(repos)
    assert list(repos.iterdir()) == []
    make_repository(path)
    assert is_repository(path)


def test_a_repository_that_was_never_finished_is_made_anew(repos: Path) -> None:
    path = repos / "kit-a.git"
    (path / "refs" / "heads").mkdir(parents=True)
    (path / "HEAD.lock").touch()
    with pytest.raises(InfrastructureError, match=r"can't become a repository: .*: move it away"):
        make_repository(path)
    mend_repositories(repos)
    make_repository(path)
    assert is_repository(path)


@pytest.mark.parametrize(
    "lock", ["HEAD.lock", "packed-refs.lock", "shallow.lock", "refs/heads/deep/folder.lock"]
)
def test_the_lock_of_a_killed_git_is_removed_and_nothing_else(kept: Path, lock: str) -> None:
    before = git(kept, "for-each-ref")
    path = kept / lock
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    mend_repositories(kept.parent)
    assert not path.exists()
    assert git(kept, "for-each-ref") == before != b""
    git(kept, "pack-refs", "--all")
    git(kept, "fsck", "--strict")


def test_objects_however_many_are_not_looked_through_for_locks(kept: Path) -> None:
    (kept / "HEAD.lock").touch()
    (kept / "objects" / "aa.lock").touch()
    closed = kept / "objects" / "closed"  # root may read it all the same: see it as a plain user
    closed.mkdir(0o000)
    assert mend_repositories(kept.parent) == []
    closed.chmod(0o700)
    assert not (kept / "HEAD.lock").exists()
    assert (kept / "objects" / "aa.lock").exists()


def test_a_damaged_repository_with_objects_is_left_for_its_owner(kept: Path) -> None:
    (kept / "HEAD").unlink()
    objects = sorted(path for path in kept.rglob("*") if path.is_file())
    mend_repositories(kept.parent)
    assert sorted(path for path in kept.rglob("*") if path.is_file()) == objects


def test_what_is_not_ours_stays(repos: Path, tmp_path: Path) -> None:
    files = {
        "canary": "x",
        "website.git/src/index.html": "my only copy",
        "kit-a.git/notes/mine": "x",
        "quarantine-notes/n": "x",
        ".half-a-year/n": "x",
        "mirror.git/packed-refs": "x",
    }
    for name, text in files.items():
        (repos / name).parent.mkdir(parents=True, exist_ok=True)
        (repos / name).write_text(text)
    make_repository(repos / "kit-b.git")
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "v.lock").touch()
    (repos / "kit-b.git" / "refs" / "away").symlink_to(victim)
    (repos / "kit-c.git").symlink_to(victim)
    before = sorted(repos.rglob("*"))
    assert mend_repositories(repos) == []
    assert sorted(repos.rglob("*")) == before
    assert (victim / "v.lock").exists()


def test_what_cannot_be_mended_is_named_and_the_rest_is(repos: Path, kept: Path) -> None:
    make_repository(repos / "kit-odd.git")
    (repos / "kit-odd.git" / "a.lock").mkdir()
    (kept / "HEAD.lock").touch()
    closed = repos / "kit-closed.git"
    closed.mkdir(0o000)
    problems = mend_repositories(repos)
    assert not (kept / "HEAD.lock").exists()
    assert (repos / "kit-odd.git" / "a.lock").is_dir()
    if os.geteuid() == 0:  # may read it, and sees that it was never finished
        assert problems == []
    else:
        assert problems == [f"{closed} can't be mended: Permission denied"]
        closed.chmod(0o700)
