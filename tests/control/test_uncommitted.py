"""Changes of project and kit that are in no commit are not sent, and that is said."""

import os
from pathlib import Path

import pytest

from tests.control.assigning import checked, contract_at
from tests.control.desk import kit_files, make_repo, run_git, write
from thermite.control import uncommitted
from thermite.control.home import ControlHome
from thermite.control.uncommitted import changed_files

pytestmark = pytest.mark.usefixtures("rig")


def known(project: Path) -> Path:
    """Return a file of the project that git knows, and not the contract."""
    names = run_git(project, "ls-files").split()
    return project / next(name for name in names if name != "contract.json")


def checked_warnings(home: ControlHome, contract: Path, kit: Path) -> list[str]:
    return checked(home, contract, kit=kit).warnings


def test_what_is_changed_or_staged_or_gone_is_named_with_what_to_do(
    home: ControlHome, project: Path, kit: Path
) -> None:
    write(project, {f"more-{n}.txt": "x" for n in range(4)})
    run_git(project, "add", "-A")
    run_git(project, "commit", "-q", "-m", "more")
    contract = contract_at(project)
    assert checked_warnings(home, contract, kit) == []
    write(project, {"more-0.txt": "y", "staged.txt": "z", "unknown.txt": "z"})
    (project / "more-1.txt").unlink()
    (project / "more-2.txt").chmod(0o755)
    run_git(project, "add", "staged.txt")
    assert changed_files(project) == ["more-0.txt", "more-1.txt", "more-2.txt", "staged.txt"]
    [said] = checked_warnings(home, contract, kit)
    assert said == (
        f"the project in {project} has changes that are in no commit, and they are not sent:"
        " 'more-0.txt', 'more-1.txt', 'more-2.txt' and 1 more: commit them first, if they are"
        " meant"
    )


def test_a_kits_repository_too_and_no_pinned_commit(
    home: ControlHome, project: Path, tmp_path: Path
) -> None:
    kit = tmp_path / "kits"
    commit = make_repo(kit, {**kit_files(), "more.txt": "x"})
    (kit / "more.txt").write_text("y")
    contract = contract_at(project)
    assert ["the kit in " in one for one in checked_warnings(home, contract, kit)] == [True]
    pinned = contract_at(project, project={"kit": {"repo": "judge", "commit": commit}})
    assert checked_warnings(home, pinned, kit) == []


def test_what_was_only_touched_is_unchanged_and_nothing_of_the_repositorys_own_is_run(
    project: Path, tmp_path: Path
) -> None:
    """A repository may be somebody else's, and its configuration may name programs."""
    ran, one = tmp_path / "ran", known(project)
    write(project, {".gitattributes": "*.turned filter=ours\n", "a.turned": "a"})
    run_git(project, "add", "-A")
    run_git(project, "commit", "-q", "-m", "attributes")
    for way in ("clean", "process"):
        run_git(project, "config", f"filter.ours.{way}", f"touch {ran}; cat")
    run_git(project, "config", "diff.external", f"touch {ran}")
    with (project / ".git/config").open("a") as config:
        config.write(f"[core]\n\tfsmonitor = touch {ran}\n")
    os.utime(one, (1, 1))
    assert changed_files(project) == []
    one.write_bytes(b"changed")
    (project / "a.turned").write_text("what git would keep of it is the filter's to say")
    assert changed_files(project) == [one.name]
    assert not ran.exists()


def test_where_it_cannot_be_told_nothing_is_said(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_git(tmp_path, "clone", "-q", "--bare", str(project), "bare.git")
    assert changed_files(tmp_path / "bare.git") == []
    known(project).write_bytes(b"changed")
    assert changed_files(project) != []
    with monkeypatch.context() as patch:
        patch.setattr(uncommitted, "_MOST_BYTES", 3)
        assert changed_files(project) == []
    (project / ".git/index").write_bytes(b"damaged")
    assert changed_files(project) == []


def test_links_and_odd_names_are_compared_by_what_git_keeps(project: Path) -> None:
    odd = os.fsdecode(b"a\nb\xff")
    (project / odd).write_text("x")
    (project / "link").symlink_to("elsewhere")
    run_git(project, "add", "-A")
    run_git(project, "commit", "-q", "-m", "odd")
    for name in (odd, "link"):
        os.utime(project / name, (1, 1), follow_symlinks=False)
    assert changed_files(project) == []
    (project / "link").unlink()
    (project / "link").symlink_to("nowhere")
    (project / odd).write_text("y")
    assert changed_files(project) == [odd, "link"]
