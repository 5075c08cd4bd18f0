"""Bundles: what arrives is one commit with its whole history, or nothing arrives."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from tests.kit.git_author import CLOSED, blob, commit_files, commit_tree, plain_git, raw_tree
from thermite.errors import CommandError, KitError, UsageError
from thermite.kit.bundle import (
    check_walk,
    commit_of_folder,
    has_commit,
    keep_from_bundle,
    make_bundle,
    quarantine_steps,
    read_header,
)
from thermite.kit.export import tree_entries
from thermite.kit.git import git
from thermite.schema.ids import CommitId


@pytest.fixture
def sent(repo: Path, tmp_path: Path) -> tuple[CommitId, Path]:
    """Return a commit with a parent, and its bundle."""
    commit_files(repo, {"kit.json": b"{}"})
    commit = CommitId(commit_files(repo, {"bench/a": os.urandom(5000), "b": b"x"}))
    path = tmp_path / "sent.bundle"
    make_bundle(repo, commit, path)
    return commit, path


def refusal(bundle: Path, commit: str, kept: Path) -> tuple[str, str]:
    with pytest.raises(CommandError) as caught:
        keep_from_bundle(bundle, kept, CommitId(commit))
    assert not kept.exists() or not has_commit(kept, CommitId(commit))
    left = [one.name for one in kept.parent.iterdir() if one.name.startswith("quarantine")]
    assert left == []
    return caught.value.code, str(caught.value)


def travels(repo: Path, commit: str, place: Path) -> bool:
    """Return whether a rig has a commit after a bundle of it came."""
    made, kept = CommitId(commit), place / "rig" / "k.git"
    make_bundle(repo, made, place / "b")
    keep_from_bundle(place / "b", kept, made)
    return has_commit(kept, made)


def test_a_bundle_travels_and_twice_is_once(sent: tuple[CommitId, Path], tmp_path: Path) -> None:
    commit, bundle = sent
    kept = tmp_path / "rig" / "kit-smoke.git"
    for _ in range(2):
        keep_from_bundle(bundle, kept, commit)
    assert has_commit(kept, commit)
    assert git(kept, "rev-list", "--count", commit).strip() == b"2"
    assert not has_commit(kept, CommitId("1" * 40))
    assert sorted(one.name for one in kept.parent.iterdir()) == ["kit-smoke.git"]


def test_P4_names_that_differ_only_in_case_travel_without_a_checkout(  # noqa: N802
    repo: Path, tmp_path: Path
) -> None:
    # Made as a tree, never as files: where case does not count, control could not lay them out.
    names = (b"BENCH", b"Makefile", b"bench", b"makefile")
    tree = raw_tree(repo, [("100644", name, blob(repo, name)) for name in names])
    commit = CommitId(commit_tree(repo, tree))
    make_bundle(repo, commit, tmp_path / "sent.bundle")
    kept = tmp_path / "kept.git"
    keep_from_bundle(tmp_path / "sent.bundle", kept, commit)
    assert [(one.path, one.data) for one in tree_entries(kept, commit)] == [(n, n) for n in names]


def test_digest_and_size_are_the_file_s(repo: Path, tmp_path: Path) -> None:
    commit = CommitId(commit_files(repo, {"a": b"1"}))
    digest, size = make_bundle(repo, commit, tmp_path / "b")
    raw = (tmp_path / "b").read_bytes()
    assert (digest, size) == (hashlib.sha256(raw).hexdigest(), len(raw))
    plain_git(repo, "clone", "-q", str(tmp_path / "b"), str(tmp_path / "clone"))
    assert (tmp_path / "clone" / "a").read_bytes() == b"1"


def test_G13_another_bundle_of_the_same_commit_is_no_conflict(  # noqa: N802
    repo: Path, sent: tuple[CommitId, Path], tmp_path: Path
) -> None:
    commit, bundle = sent
    kept = tmp_path / "rig" / "kit.git"
    keep_from_bundle(bundle, kept, commit)
    later = CommitId(commit_files(repo, {"c": b"later"}))
    make_bundle(repo, later, tmp_path / "later.bundle")
    keep_from_bundle(tmp_path / "later.bundle", kept, later)
    assert has_commit(kept, commit)
    assert has_commit(kept, later)


def test_G2_a_bundle_of_a_range_is_refused_with_the_ids_it_needs(  # noqa: N802
    repo: Path, sent: tuple[CommitId, Path], tmp_path: Path
) -> None:
    commit, _ = sent
    path = tmp_path / "range.bundle"
    plain_git(repo, "bundle", "create", "-q", str(path), "HEAD~1..HEAD")
    code, said = refusal(path, commit, tmp_path / "rig" / "kit.git")
    parent = plain_git(repo, "rev-parse", "HEAD~1")
    assert code == "bundle_bad"
    assert parent in said
    assert said.endswith("send a full bundle")


def test_a_bundle_of_a_shallow_clone_is_refused_with_what_is_missing(
    repo: Path, sent: tuple[CommitId, Path], tmp_path: Path
) -> None:
    commit, _ = sent
    shallow = tmp_path / "shallow"
    plain_git(tmp_path, "clone", "-q", "--depth=1", f"file://{repo}", str(shallow))
    path = tmp_path / "shallow.bundle"
    plain_git(shallow, "bundle", "create", "-q", str(path), "HEAD")
    code, said = refusal(path, commit, tmp_path / "rig" / "kit.git")
    assert (code, "send a full bundle" in said) == ("bundle_bad", True)
    assert plain_git(repo, "rev-parse", "HEAD~1") in said
    with pytest.raises(UsageError, match="shallow clone: run git fetch --unshallow"):
        make_bundle(shallow, commit, tmp_path / "none")


@pytest.mark.parametrize("cut", [1, 20, 3000, -40, -1])
def test_a_truncated_bundle_is_refused(
    sent: tuple[CommitId, Path], tmp_path: Path, cut: int
) -> None:
    commit, bundle = sent
    short = tmp_path / "short.bundle"
    short.write_bytes(bundle.read_bytes()[:cut])
    code, said = refusal(short, commit, tmp_path / "rig" / "kit.git")
    assert code == "bundle_bad"
    assert "\n" not in said


def test_a_changed_byte_anywhere_in_the_pack_is_refused(
    sent: tuple[CommitId, Path], tmp_path: Path
) -> None:
    commit, bundle = sent
    raw = bytearray(bundle.read_bytes())
    with bundle.open("rb") as file:
        start = read_header(file).pack_at
    for at in range(start, len(raw), (len(raw) - start) // 12):
        bad = bytearray(raw)
        bad[at] ^= 0x41
        path = tmp_path / "bad.bundle"
        path.write_bytes(bad)
        assert refusal(path, commit, tmp_path / "rig" / "kit.git")[0] == "bundle_bad"


def test_another_commit_than_the_named_one_is_not_taken(
    sent: tuple[CommitId, Path], repo: Path, tmp_path: Path
) -> None:
    _, bundle = sent
    kept = tmp_path / "rig" / "kit.git"
    assert refusal(bundle, "1" * 40, kept)[0] == "commit_missing"
    tree = plain_git(repo, "rev-parse", "HEAD^{tree}")
    code, said = refusal(bundle, tree, kept)
    assert (code, said) == ("commit_missing", f"{tree} is a tree and not a commit")


def hostile(repo: Path, entries: list[tuple[str, bytes, str]], into: Path) -> str:
    """Make a bundle as git itself would, of a tree that git would never make."""
    commit = commit_tree(repo, raw_tree(repo, entries))
    plain_git(repo, "update-ref", "refs/heads/evil", commit)
    plain_git(repo, "bundle", "create", "-q", str(into), "refs/heads/evil")
    return commit


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(b".git", id="a .git entry"),
        pytest.param(b".GIT", id="a .git entry by case"),
        pytest.param(b"git~1", id="a .git entry by its short name"),
        pytest.param(b"..", id="the parent"),
        pytest.param(b"a/b", id="a slash in a name"),
    ],
)
def test_a_hostile_tree_never_touches_the_kept_repository(
    repo: Path, sent: tuple[CommitId, Path], tmp_path: Path, name: bytes
) -> None:
    good, bundle = sent
    kept = tmp_path / "rig" / "kit.git"
    keep_from_bundle(bundle, kept, good)
    before = sorted(str(one) for one in kept.rglob("*"))
    evil = hostile(repo, [("100644", name, blob(repo, b"x"))], tmp_path / "evil.bundle")
    code, said = refusal(tmp_path / "evil.bundle", evil, kept)
    assert code == "bundle_bad"
    assert "fsck" in said
    assert sorted(str(one) for one in kept.rglob("*")) == before


def test_a_gitmodules_attack_is_refused(repo: Path, tmp_path: Path) -> None:
    attack = b'[submodule "x"]\n\tpath = x\n\turl = --upload-pack=evil\n'
    entries = [("100644", b".gitmodules", blob(repo, attack)), ("160000", b"x", "1" * 40)]
    evil = hostile(repo, entries, tmp_path / "evil.bundle")
    assert refusal(tmp_path / "evil.bundle", evil, tmp_path / "rig" / "kit.git")[0] == "bundle_bad"


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"PACK" + b"\0" * 100, id="a pack"),
        pytest.param(b"# v4 git bundle\n\n", id="an unknown version"),
        pytest.param(b"# v3 git bundle\n@filter=blob:none\n\n", id="a filtered bundle"),
        pytest.param(b"# v2 git bundle\n" + b"a" * (2 << 20), id="an endless line"),
        pytest.param(b"# v2 git bundle\n" + b"0" * 40 + b" x\n" * 9, id="a header without end"),
        pytest.param(b"# v2 git bundle\nHEAD\n\n", id="a line without an id"),
        pytest.param(b"# v2 git bundle\n" + b"1" * 40 + b" HEAD\n\n", id="no pack"),
    ],
)
def test_what_is_no_bundle_is_refused_in_words(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "x.bundle"
    path.write_bytes(raw)
    code, said = refusal(path, "1" * 40, tmp_path / "rig" / "kit.git")
    assert code == "bundle_bad"
    assert said.isascii()


def test_G10_a_commit_is_found_by_id_whatever_refs_name(  # noqa: N802
    repo: Path, tmp_path: Path
) -> None:
    commit = commit_files(repo, {"a": b"1"})
    plain_git(repo, "tag", "-a", "v1", "-m", "t")
    plain_git(repo, "bundle", "create", "-q", str(tmp_path / "tag.bundle"), "refs/tags/v1")
    kept = tmp_path / "rig" / "k.git"
    keep_from_bundle(tmp_path / "tag.bundle", kept, CommitId(commit))
    assert has_commit(kept, CommitId(commit))
    plain_git(repo, "checkout", "-q", "--detach")
    later = commit_files(repo, {"a": b"2"})
    assert travels(repo, later, tmp_path)


def test_G10_an_empty_repository_has_no_such_commit(repo: Path, tmp_path: Path) -> None:  # noqa: N802
    with pytest.raises(UsageError, match="has no commit"):
        make_bundle(repo, CommitId("1" * 40), tmp_path / "b")
    with pytest.raises(UsageError, match="not the root of a git repository"):
        make_bundle(tmp_path, CommitId("1" * 40), tmp_path / "b")


def test_sha256_repositories_travel_too(tmp_path: Path) -> None:
    repo = tmp_path / "wide"
    repo.mkdir()
    plain_git(repo, "init", "-q", "--object-format=sha256")
    commit = CommitId(commit_files(repo, {"a": b"1"}))
    assert len(commit) == 64
    assert travels(repo, commit, tmp_path)


def test_the_steps_for_a_stage_do_the_same(sent: tuple[CommitId, Path], tmp_path: Path) -> None:
    commit, bundle = sent
    stage = tmp_path / "stage"
    stage.mkdir()
    (stage / "in.bundle").write_bytes(bundle.read_bytes())
    codes = [
        subprocess.run(step, cwd=stage, env=CLOSED, capture_output=True, check=False)
        for step in quarantine_steps("in.bundle", commit)
    ]
    assert [one.returncode for one in codes] == [0, 0, 0]
    check_walk(codes[-1].returncode, codes[-1].stdout.decode(), commit)
    missing = quarantine_steps("in.bundle", CommitId("2" * 40))[-1]
    walk = subprocess.run(missing, cwd=stage, env=CLOSED, capture_output=True, check=False)
    with pytest.raises(CommandError) as caught:
        check_walk(walk.returncode, (walk.stdout + walk.stderr).decode(), CommitId("2" * 40))
    assert caught.value.code == "commit_missing"


def test_G15_G11_nobody_s_environment_or_configuration_has_a_say(  # noqa: N802
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = CommitId(commit_files(repo, {"a": b"1"}))
    home = tmp_path / "home"
    home.mkdir()
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for hook in ("reference-transaction", "pre-commit", "post-checkout"):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\nexit 1\n")
        (hooks / hook).chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {hooks}\n\tautocrlf = true\n[commit]\n\tgpgsign = true\n"
        "[protocol]\n\tallow = never\n[init]\n\tdefaultBranch = odd\n"
    )
    plain_git(repo, "config", "core.hooksPath", str(hooks))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    monkeypatch.chdir(home)
    make_bundle(repo, commit, tmp_path / "b")
    keep_from_bundle(tmp_path / "b", tmp_path / "rig" / "k.git", commit)
    folder = tmp_path / "plain"
    folder.mkdir()
    (folder / "a").write_bytes(b"1\r\n")
    made = commit_of_folder(tmp_path / "kept.git", folder)
    assert git(tmp_path / "kept.git", "cat-file", "blob", f"{made}:a") == b"1\r\n"
    assert not (tmp_path / "ran").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a repository away")
def test_G5_a_repository_of_another_user_is_read(repo: Path, tmp_path: Path) -> None:  # noqa: N802
    commit = CommitId(commit_files(repo, {"a": b"1"}))
    for path in [repo, *repo.rglob("*")]:
        os.chown(path, 12345, 12345)
    assert travels(repo, commit, tmp_path)


def test_a_linked_worktree_is_a_repository(repo: Path, tmp_path: Path) -> None:
    commit = CommitId(commit_files(repo, {"a": b"1"}))
    plain_git(repo, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    assert travels(tmp_path / "tree", commit, tmp_path)


def test_the_same_folder_is_the_same_commit_everywhere(tmp_path: Path) -> None:
    ids = []
    for name in ("one", "two"):
        folder = tmp_path / name / "kit"
        (folder / "bench").mkdir(parents=True)
        for file in sorted(("kit.json", "bench/a.c", ".gitignore"), reverse=name == "two"):
            (folder / file).write_bytes(b"*\n")
        (folder / "bench/run.sh").write_bytes(b"x")
        (folder / "bench/run.sh").chmod(0o755)
        (folder / "ü \t").write_bytes(b"odd")
        (folder / "link").symlink_to("kit.json")
        ids += [commit_of_folder(tmp_path / name / "store.git", folder) for _ in range(2)]
    assert ids == ["6551c801612df820c9d353f9975278339746351e"] * 4
    store = tmp_path / "one" / "store.git"
    assert git(store, "log", "-1", "--format=%an %ae %at %ct", ids[0]) == (
        b"thermite thermite@localhost 0 0\n"
    )


@pytest.mark.parametrize(
    ("make", "said"),
    [
        pytest.param(lambda f: os.mkfifo(f / "pipe"), "pipe is not a file", id="pipe"),
        pytest.param(lambda f: (f / "sub/.git").mkdir(parents=True), "sub/.git is a git", id="git"),
        pytest.param(lambda f: (f / "a\nb").touch(), "line break in its name", id="line break"),
    ],
)  # fmt: skip
def test_what_git_can_t_carry_is_refused(tmp_path: Path, make: object, said: str) -> None:
    folder = tmp_path / "kit"
    folder.mkdir()
    make(folder)  # type: ignore[operator]
    with pytest.raises(KitError, match=said):
        commit_of_folder(tmp_path / "store.git", folder)
    assert not (tmp_path / "store.git").exists()
