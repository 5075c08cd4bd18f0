"""Repositories of projects and kits: found, fetched, read without harm, or refused."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.control.assigning import checked, contract_at, sent
from tests.control.desk import kit_files, make_repo, run_git, write
from tests.requirement import shows
from tests.supervisor.forge import Forge
from thermite.command.keyring import SigningKey
from thermite.control.home import ControlHome
from thermite.errors import ContractError, NotFoundError, UsageError
from thermite.shipped import shipped

pytestmark = pytest.mark.usefixtures("rig")


def test_the_same_kit_folder_is_the_same_commit_everywhere(
    home: ControlHome, project: Path, kit: Path, tmp_path: Path
) -> None:
    first = checked(home, project / "contract.json", kit=kit).completed.contract
    copy = tmp_path / "elsewhere" / "named otherwise"
    write(copy, kit_files())
    second = checked(home, project / "contract.json", kit=str(copy)).completed.contract
    assert first.project.kit == second.project.kit
    # As `git commit-tree` makes it of these bytes, by thermite <thermite@localhost> at 0 +0000.
    assert first.project.kit is not None
    assert first.project.kit.commit == "8fa8f1aa621939c4ec813615c2cbda7fe25d2598"


@shows("K-003", "K-185")
def test_a_kits_repository_is_sent_at_its_commit_and_a_pinned_one_is_kept(
    home: ControlHome, project: Path, tmp_path: Path
) -> None:
    first = make_repo(tmp_path / "kits", kit_files())
    write(tmp_path / "kits", {"more.txt": "x"})
    run_git(tmp_path / "kits", "add", "-A")
    run_git(tmp_path / "kits", "commit", "-q", "-m", "second")
    newest = run_git(tmp_path / "kits", "rev-parse", "HEAD")
    contract = checked(home, project / "contract.json", kit=tmp_path / "kits")
    assert contract.completed.contract.project.kit is not None
    assert contract.completed.contract.project.kit.commit == newest
    pinned = contract_at(project, project={"kit": {"repo": "judge", "commit": first}})
    kept = checked(home, pinned, kit=tmp_path / "kits").completed.contract.project.kit
    assert kept is not None
    assert (kept.repo, kept.commit) == ("judge", first)


@shows("K-003")
def test_a_pinned_kit_folder_that_has_changed_is_refused(
    home: ControlHome, project: Path, kit: Path
) -> None:
    pinned = contract_at(project, project={"kit": {"repo": "tiny-cpu", "commit": "0" * 40}})
    with pytest.raises(UsageError, match=f"the contract names '{'0' * 40}'"):
        checked(home, pinned, kit=kit)


def test_a_kept_kit_is_found_by_its_name(
    home: ControlHome, project: Path, kit: Path, key: SigningKey
) -> None:
    sent(home, project / "contract.json", key, kit=kit)
    by_path = checked(home, project / "contract.json", kit=kit).completed.contract
    by_name = checked(home, project / "contract.json", kit="tiny-cpu").completed.contract
    assert by_path == by_name
    with pytest.raises(NotFoundError, match="control keeps tiny-cpu"):
        checked(home, project / "contract.json", kit="tiny-gpu")


def test_a_shipped_kit_is_found_by_its_name(home: ControlHome, project: Path) -> None:
    contract = contract_at(
        project,
        cells=["small"],
        held_out_cells=["held"],
        objective={"primary": {"metric": "flops_per_s"}},
    )
    kit = checked(home, contract, kit="smoke-cpu").completed.contract.project.kit
    assert kit is not None
    assert kit.repo == "smoke-cpu"
    assert [path.name for path in home.kits.iterdir()] == ["smoke-cpu.git"]


def test_a_look_at_a_kit_keeps_none_and_moves_no_name(
    home: ControlHome, project: Path, kit: Path, key: SigningKey
) -> None:
    """An estimate or a dry run of a changed kit had the name mean that one from then on."""
    contract = project / "contract.json"
    checked(home, contract, kit=kit)
    with pytest.raises(NotFoundError, match="control keeps none"):
        checked(home, contract, kit="tiny-cpu")
    sent(home, contract, key, kit=kit)
    before = checked(home, contract, kit="tiny-cpu").completed.contract
    (kit / "more.txt").write_text("not sent yet")
    changed = checked(home, contract, kit=kit).completed.contract
    assert changed.project.kit != before.project.kit
    assert checked(home, contract, kit="tiny-cpu").completed.contract == before
    sent(home, contract, key, kit=kit)
    assert checked(home, contract, kit="tiny-cpu").completed.contract == changed


def test_a_kept_kit_that_hides_a_shipped_one_of_its_name_is_said(
    home: ControlHome, project: Path, tmp_path: Path, key: SigningKey
) -> None:
    """Whoever sent another kit of that name, or has upgraded, gets the kept one for its name."""
    contract = contract_at(
        project,
        cells=["small"],
        held_out_cells=["held"],
        objective={"primary": {"metric": "flops_per_s"}},
    )
    ours = shipped("kits/smoke-cpu")
    assert checked(home, contract, kit="smoke-cpu").warnings == []
    other = tmp_path / "other"
    shutil.copytree(ours, other)
    (other / "notes.txt").write_text("another kit")
    sent(home, contract, key, kit=other)
    [said] = checked(home, contract, kit="smoke-cpu").warnings
    assert said.startswith("kit smoke-cpu is the one that control keeps, at ")
    assert said.endswith(f": for the one that comes with Thermite give --kit {ours}")
    sent(home, contract, key, kit=ours)
    assert checked(home, contract, kit="smoke-cpu").warnings == [], "the one sent last again"


def test_a_campaign_without_a_kit_asks_for_one(home: ControlHome, project: Path) -> None:
    with pytest.raises(UsageError, match="--kit"):
        checked(home, project / "contract.json")


def test_a_project_elsewhere_is_named(
    home: ControlHome, kit: Path, project: Path, tmp_path: Path
) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    contract = contract_at(alone)
    with pytest.raises(UsageError, match="in no git repository"):
        checked(home, contract, kit=kit)
    whole = checked(home, contract, kit=kit, project=project).completed.contract
    assert whole.project.commit == run_git(project, "rev-parse", "HEAD")


# Known faults G10
@shows("G10")
def test_the_commit_is_found_whatever_refs_there_are(
    home: ControlHome, kit: Path, project: Path
) -> None:
    wanted = run_git(project, "rev-parse", "HEAD")
    run_git(project, "tag", "-a", "v1", "-m", "x")
    run_git(project, "branch", "-m", "trunk")
    for revision in ("v1", "trunk", wanted, wanted[:10], "HEAD"):
        contract = contract_at(project, project={"commit": revision})
        assert checked(home, contract, kit=kit).completed.contract.project.commit == wanted
    run_git(project, "checkout", "-q", "--detach")
    run_git(project, "branch", "-D", "trunk")
    run_git(project, "tag", "-d", "v1")
    assert checked(home, contract_at(project), kit=kit).completed.contract.project.commit == (
        wanted
    )


@shows("G10")
def test_an_empty_repository_has_no_commit(home: ControlHome, kit: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    run_git(empty, "init", "-q")
    with pytest.raises(UsageError, match="has no commit"):
        checked(home, contract_at(empty), kit=kit)


@pytest.mark.parametrize("revision", ["nowhere", "--all", "HEAD\n", "-x", "HEAD:main.c", ""])
def test_a_revision_that_is_none_is_refused(
    home: ControlHome, kit: Path, project: Path, revision: str
) -> None:
    with pytest.raises((UsageError, ContractError), match=r"no revision|project\.commit"):
        checked(home, contract_at(project, project={"commit": revision}), kit=kit)


def test_a_shallow_clone_is_refused_before_anything_is_sent(
    home: ControlHome, kit: Path, project: Path, tmp_path: Path
) -> None:
    write(project, {"more.c": ""})
    run_git(project, "add", "-A")
    run_git(project, "commit", "-q", "-m", "second")
    clone = tmp_path / "clone"
    run_git(tmp_path, "clone", "-q", "--depth", "1", f"file://{project}", str(clone))
    with pytest.raises(UsageError, match="shallow"):
        checked(home, contract_at(clone), kit=kit)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@shows("G5")
def test_repositories_of_another_user_are_read(
    home: ControlHome, project: Path, tmp_path: Path
) -> None:
    kit = tmp_path / "kits"
    make_repo(kit, kit_files())
    for root in (project, kit):
        for path in (root, *root.rglob("*")):
            os.chown(path, 12345, 12345)
    strict = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    plain = ["git", "-C", str(kit), "log"]
    refused = subprocess.run(plain, check=False, capture_output=True, env=strict)
    assert b"dubious ownership" in refused.stderr
    whole = checked(home, contract_at(project), kit=kit)
    assert whole.completed.contract.project.commit
    before = {path: path.stat().st_uid for path in kit.rglob("*")}
    assert set(before.values()) == {12345}  # nothing of ours was written there


@shows("G7")
def test_git_lfs_pointers_are_named_with_the_size_of_what_is_missing(
    home: ControlHome, kit: Path, project: Path
) -> None:
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'ab' * 32}\nsize 12345678\n"
    write(project, {"data/w.bin": pointer, ".gitattributes": "*.bin filter=lfs\n"})
    run_git(project, "add", "-A", GIT_CONFIG_COUNT="0")
    run_git(project, "commit", "-q", "-m", "pointer")
    (warning,) = checked(home, contract_at(project), kit=kit).warnings
    assert "data/w.bin is a Git LFS pointer (12.3 MB)" in warning
    assert "--model" in warning


def test_an_address_is_fetched_over_ssh_into_the_kept_kits(
    home: ControlHome,
    project: Path,
    tmp_path: Path,
    key: SigningKey,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With an ssh that runs the far command here: git speaks its real protocol through it."""
    commit = make_repo(tmp_path / "far", kit_files())
    write(tmp_path, {"bin/ssh": '#!/bin/sh\nfor last; do :; done\nexec sh -c "$last"\n'})
    (tmp_path / "bin" / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    for address in (f"ssh://example.org{tmp_path}/far", f"me@example.org:{tmp_path}/far"):
        kit = checked(home, contract_at(project), kit=address).completed.contract.project.kit
        assert kit is not None
        assert kit.commit == commit
    sent(home, contract_at(project), key, kit=address)
    by_name = checked(home, contract_at(project), kit="tiny-cpu").completed.contract.project.kit
    assert by_name == kit
    assert [path.name for path in home.kits.iterdir()] == ["tiny-cpu.git"]


@shows("K-185")
def test_an_address_is_fetched_over_https_from_a_server_with_a_certificate_of_ones_own(
    home: ControlHome, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = make_repo(tmp_path / "far", kit_files())
    (tmp_path / "repos").mkdir()
    run_git(tmp_path, "clone", "-q", "--bare", str(tmp_path / "far"), "repos/kit.git")
    forge = Forge(tmp_path / "repos", ("nobody", ""), is_public=True)
    with forge.serving(tmp_path) as pem:
        address = f"{forge.url}/kit.git"
        with pytest.raises(UsageError, match="certificate verification failed"):
            checked(home, contract_at(project), kit=address)
        monkeypatch.setenv("GIT_SSL_CAINFO", str(pem))
        kit = checked(home, contract_at(project), kit=address).completed.contract.project.kit
    assert kit is not None
    assert kit.commit == commit


@pytest.mark.parametrize("address", ["file:///x", "ext::sh -c date", "git://127.0.0.1:9/x"])
def test_an_address_of_another_kind_is_not_fetched(
    home: ControlHome, project: Path, address: str
) -> None:
    with pytest.raises((UsageError, NotFoundError)) as caught:
        checked(home, contract_at(project), kit=address)
    assert "can't be fetched" in str(caught.value) or "there is no kit" in str(caught.value)


# Known faults G11, G15
@shows("G11")
def test_nobodys_git_settings_take_part(
    tmp_path: Path, home: ControlHome, kit: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = checked(home, contract_at(project), kit=kit).completed.contract
    config = tmp_path / "config"
    hook = tmp_path / "hooks" / "reference-transaction"
    write(tmp_path, {"hooks/reference-transaction": "#!/bin/sh\nexit 1\n"})
    hook.chmod(0o755)
    config.write_text(
        "[commit]\n gpgsign = true\n[core]\n autocrlf = true\n"
        f" hooksPath = {hook.parent}\n[init]\n defaultBranch = other\n"
        '[protocol "file"]\n allow = never\n[user]\n useConfigOnly = true\n',
        encoding="utf-8",
    )
    other = tmp_path / "other"
    make_repo(other, {"x": "y"})
    monkeypatch.chdir(other)
    for name, value in {
        "GIT_CONFIG_GLOBAL": str(config),
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_OBJECT_DIRECTORY": str(tmp_path / "objects"),
    }.items():
        monkeypatch.setenv(name, value)
    write(kit, {"new.txt": "so that the kit is committed anew\n"})
    again = checked(home, contract_at(project), kit=kit).completed.contract
    assert again.project.commit == wanted.project.commit
    assert again.project.kit != wanted.project.kit
