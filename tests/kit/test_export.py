"""Export: the bytes that git stores, or a refusal that names the path."""

import stat
from pathlib import Path

import pytest

from tests.kit.git_author import blob, commit_files, commit_tree, plain_git, raw_tree
from thermite.errors import InfrastructureError, KitError
from thermite.kit.export import SOURCE_LIMITS, SourceRefused, export_folder, tree_entries, tree_of
from thermite.schema.ids import CommitId
from thermite.schema.stage import CollectLimits

EVIL_ATTRIBUTES = (
    b"* text=auto eol=crlf ident export-subst\nhidden.c export-ignore\n"
    b"big.c filter=lfs\nwide.c working-tree-encoding=UTF-16\n"
)
SOURCE = b"int a; /* $Id$ $Format:%H$ */\n"


def refusal(repo: Path, commit: str, limits: CollectLimits | None = None) -> list[str]:
    with pytest.raises(SourceRefused) as caught:
        tree_entries(repo, CommitId(commit), limits or SOURCE_LIMITS)
    return caught.value.problems


def test_attributes_of_the_tree_change_no_byte(repo: Path) -> None:
    files = dict.fromkeys(("hidden.c", "big.c", "wide.c", "src/deep.c"), SOURCE)
    commit_files(repo, files)
    evil = f"100644,{blob(repo, EVIL_ATTRIBUTES)},.gitattributes"
    plain_git(repo, "update-index", "--add", "--cacheinfo", evil)
    commit = commit_tree(repo, plain_git(repo, "write-tree"))
    found = {one.path.decode(): one.data for one in tree_entries(repo, CommitId(commit))}
    assert found == {**files, ".gitattributes": EVIL_ATTRIBUTES, "src": b""}


def test_kinds_and_order_are_git_s(repo: Path) -> None:
    (repo / "run.sh").write_text("#!/bin/sh\n")
    (repo / "run.sh").chmod(0o755)
    (repo / "to").symlink_to("src/a.c")
    commit = commit_files(repo, {"src/a.c": b"a"})
    entries = tree_entries(repo, CommitId(commit))
    assert [(one.path, one.kind, one.data) for one in entries] == [
        (b"run.sh", "executable", b"#!/bin/sh\n"),
        (b"src", "folder", b""),
        (b"src/a.c", "file", b"a"),
        (b"to", "link", b"src/a.c"),
    ]


def test_names_that_are_not_text_come_through(repo: Path) -> None:
    names = [b"-rf", b"\xff\xfe", b"tab\there", b" blank", b"\x1b[31mred"]
    tree = raw_tree(repo, sorted((("100644", n, blob(repo, n)) for n in names), key=lambda t: t[1]))
    commit = commit_tree(repo, tree)
    assert [one.path for one in tree_entries(repo, CommitId(commit))] == sorted(names)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        pytest.param(b".git", ".git has a part named .git", id="refused-git"),
        pytest.param(b".GiT", ".GiT has a part named .git", id="refused-git-by-case"),
        pytest.param(b".kit", ".kit is the kit's place", id="refused-kit"),
        pytest.param(b"..", ".. is not a plain path", id="refused-parent"),
        pytest.param(b"a\nb", "a\\nb has a line break in its name", id="refused-line-break"),
        pytest.param(b"a\rb", "a\\rb has a line break in its name", id="refused-return"),
    ],
)
def test_a_name_that_no_stage_may_hold_is_refused(repo: Path, name: bytes, said: str) -> None:
    tree = raw_tree(repo, [("100644", name, blob(repo, b"x"))])
    assert refusal(repo, commit_tree(repo, tree)) == [said]


def test_a_kit_folder_deeper_down_is_the_candidate_s_own(repo: Path) -> None:
    commit = commit_files(repo, {"sub/.kit/a": b""})
    assert len(tree_entries(repo, CommitId(commit))) == 3


def test_R4_a_kit_folder_and_a_kit_link_are_refused(repo: Path) -> None:  # noqa: N802
    assert refusal(repo, commit_files(repo, {".kit/bench/build.sh": b"x"})) == [
        ".kit is the kit's place"
    ]
    tree = raw_tree(repo, [("120000", b".kit", blob(repo, b"src"))])
    assert refusal(repo, commit_tree(repo, tree)) == [".kit is the kit's place"]


def test_G6_another_repository_inside_is_refused(repo: Path) -> None:  # noqa: N802
    tree = raw_tree(repo, [("160000", b"lib", "1" * 40)])
    assert refusal(repo, commit_tree(repo, tree)) == ["lib is another git repository"]


def test_a_name_that_stands_twice_is_refused(repo: Path) -> None:
    content = blob(repo, b"x")
    tree = raw_tree(repo, [("100644", b"a", content), ("120000", b"a", content)])
    assert "a stands twice" in refusal(repo, commit_tree(repo, tree))


@pytest.mark.parametrize(
    ("links", "bad"),
    [
        pytest.param({"l": "/etc/passwd"}, ["l"], id="absolute"),
        pytest.param({"l": ".."}, ["l"], id="parent"),
        pytest.param({"d/l": "../../x"}, ["d/l"], id="climbs out of a folder"),
        pytest.param({"d/l": "../x"}, [], id="climbs inside"),
        pytest.param({"l": "nowhere"}, [], id="dangling inside"),
        pytest.param({"a": "b", "b": "a"}, ["a", "b"], id="loop"),
        pytest.param({"a": "d/b", "d/b": "c/d", "d/c": ".."}, [], id="through links, inside"),
        pytest.param({"a": "d/b/..", "d/b": "..", "d/c": "x"}, ["a"], id="out through a link"),
        pytest.param({"l": ""}, ["l"], id="empty"),
    ],
)
def test_a_link_that_leaves_the_tree_is_refused(
    repo: Path, links: dict[str, str], bad: list[str]
) -> None:
    tops: dict[str, list[tuple[str, bytes, str]]] = {"": []}
    for name, target in links.items():
        folder, _, last = name.rpartition("/")
        tops.setdefault(folder, []).append(("120000", last.encode(), blob(repo, target.encode())))
    for folder in [one for one in tops if one]:
        inner = raw_tree(repo, sorted(tops[folder], key=lambda one: one[1]))
        tops[""].append(("40000", folder.encode(), inner))
    commit = commit_tree(repo, raw_tree(repo, sorted(tops[""], key=lambda one: one[1])))
    if bad:
        assert refusal(repo, commit) == [f"{one} is a link that leaves the tree" for one in bad]
    else:
        assert len(tree_entries(repo, CommitId(commit))) >= len(links)


def test_limits_are_counted_before_a_file_is_read(repo: Path) -> None:
    commit = commit_files(repo, {"a": b"12345", "d/b": b"12345"})
    assert (
        len(
            tree_entries(repo, CommitId(commit), CollectLimits(entries=3, levels=2, total_bytes=10))
        )
        == 3
    )
    assert refusal(repo, commit, CollectLimits(entries=2, levels=2, total_bytes=10)) == [
        "more than 2 files and folders"
    ]
    assert refusal(repo, commit, CollectLimits(entries=3, levels=1, total_bytes=10)) == [
        "d/b… is nested more than 1 deep"
    ]
    assert refusal(repo, commit, CollectLimits(entries=3, levels=2, total_bytes=9)) == [
        "10 bytes, and at most 9 are taken"
    ]


def test_a_tree_that_folds_out_to_ten_billion_folders_is_refused_quickly(repo: Path) -> None:
    tree = raw_tree(repo, [("100644", b"x", blob(repo, b"x" * 1000))])
    for _ in range(10):
        tree = raw_tree(repo, [("40000", b"%d" % i, tree) for i in range(10)])
    assert refusal(repo, commit_tree(repo, tree)) == ["more than 49999 files and folders"]


def test_ten_billion_empty_folders_are_refused_too(repo: Path) -> None:
    tree = raw_tree(repo, [])
    for _ in range(10):
        tree = raw_tree(repo, [("40000", b"%d" % i, tree) for i in range(10)])
    assert refusal(repo, commit_tree(repo, tree)) == ["more than 49999 files and folders"]


def test_many_problems_are_named_up_to_a_point(repo: Path) -> None:
    link = blob(repo, b"/etc")
    tree = raw_tree(repo, [("120000", b"%02d" % i, link) for i in range(30)])
    problems = refusal(repo, commit_tree(repo, tree))
    assert len(problems) == 21
    assert problems[-1] == "and 10 more"


def test_a_missing_commit_is_infrastructure(repo: Path) -> None:
    commit_files(repo, {"a": b""})
    with pytest.raises(InfrastructureError, match="rev-parse"):
        tree_entries(repo, CommitId("1" * 40))
    with pytest.raises(InfrastructureError, match="not a full commit id"):
        tree_of(repo, CommitId("HEAD"))


def test_a_replaced_object_is_not_believed(repo: Path) -> None:
    commit = commit_files(repo, {"a": b"old"})
    tree = plain_git(repo, "rev-parse", f"{commit}^{{tree}}")
    other = commit_files(repo, {"a": b"new"})
    plain_git(repo, "replace", commit, other)
    assert tree_of(repo, CommitId(commit)) == tree
    assert [one.data for one in tree_entries(repo, CommitId(commit))] == [b"old"]


def test_a_kit_is_exported_for_its_owner_alone(repo: Path, tmp_path: Path) -> None:
    (repo / "bench").mkdir()
    (repo / "bench/build.sh").write_text("x")
    (repo / "bench/build.sh").chmod(0o755)
    (repo / "link").symlink_to("kit.json")
    commit = commit_files(repo, {"kit.json": b"{}"})
    into = tmp_path / "exports" / commit
    export_folder(repo, CommitId(commit), into)
    modes = {p.name: stat.S_IMODE(p.lstat().st_mode) for p in [into, *into.rglob("*")]}
    assert modes.pop("link") == 0o777
    assert modes == {commit: 0o700, "bench": 0o700, "build.sh": 0o700, "kit.json": 0o600}
    assert (into / "kit.json").read_bytes() == b"{}"
    assert (into / "link").readlink() == Path("kit.json")
    assert [one.name for one in into.parent.iterdir()] == [commit]
    later = commit_files(repo, {"later": b""})
    export_folder(repo, CommitId(later), into.parent / later)
    export_folder(repo, CommitId(later), into.parent / later)
    assert sorted(one.name for one in into.parent.iterdir()) == sorted([commit, later])


def test_G6_a_kit_with_a_submodule_is_refused_and_leaves_nothing(  # noqa: N802
    repo: Path, tmp_path: Path
) -> None:
    commit = commit_tree(repo, raw_tree(repo, [("160000", b"lib", "1" * 40)]))
    into = tmp_path / "exports" / commit
    with pytest.raises(KitError, match="lib is another git repository"):
        export_folder(repo, CommitId(commit), into)
    assert not into.exists()
