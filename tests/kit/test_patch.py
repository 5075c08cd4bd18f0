"""A patch that is carried as text gives the very tree back, whatever the files hold."""

from pathlib import Path

import pytest

from thermite.kit.folder import commit_of_folder
from thermite.kit.git import GitError, git
from thermite.kit.patch import patch_between, tree_after


def tree(repo: Path, commit: str) -> str:
    return git(repo, "rev-parse", f"{commit}^{{tree}}").decode().strip()


def commits(folder: Path, before: dict[str, bytes], after: dict[str, bytes]) -> tuple[str, str]:
    made = []
    for name, files in (("before", before), ("after", after)):
        (folder / name).mkdir()
        for file, raw in files.items():
            (folder / name / file).write_bytes(raw)
        made.append(commit_of_folder(folder / "repo.git", folder / name))
    return made[0], made[1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"a": b"x\n"}, {"a": b"y \t\n"}, id="text with blanks at an end"),
        pytest.param({"a": b"x"}, {"a": b"x\r\n"}, id="ends of lines"),
        pytest.param({"a": "é\n".encode("latin-1")}, {"a": b"e\n", "b": b"n"}, id="no UTF-8"),
        pytest.param({"a": bytes(range(256))}, {"a": bytes(99)}, id="binary"),
        pytest.param({"a": b"x"}, {'b "c': b"x"}, id="another name"),
        pytest.param({"a": b"x"}, {"a": b"x"}, id="no change"),
        pytest.param({"a": b"x", ".gitattributes": b"* text eol=crlf"}, {"a": b"y"}, id="filters"),
    ],
)
def test_a_patch_makes_the_other_tree_and_leaves_no_trace(
    tmp_path: Path, before: dict[str, bytes], after: dict[str, bytes]
) -> None:
    old, new = commits(tmp_path, before, after)
    repo = tmp_path / "repo.git"
    there = sorted(repo.rglob("*"))
    patch = patch_between(repo, old, new)
    assert tree_after(repo, tree(repo, old), patch.encode()) == tree(repo, new)
    assert sorted(repo.rglob("*")) == there


def test_a_changed_patch_makes_another_tree_or_does_not_fit(tmp_path: Path) -> None:
    old, new = commits(tmp_path, {"a": b"x\n"}, {"a": b"y\n"})
    repo = tmp_path / "repo.git"
    patch = patch_between(repo, old, new)
    assert tree_after(repo, tree(repo, old), patch.replace("+y", "+z").encode()) != tree(repo, new)
    for odd in (patch.replace("-x", "-w"), "words\n", patch.replace("a/a", "a/../a"), "\0"):
        with pytest.raises(GitError):
            tree_after(repo, tree(repo, old), odd.encode())
