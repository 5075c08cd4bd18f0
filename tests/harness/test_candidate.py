"""What becomes a candidate and what is refused, with real git."""

from pathlib import Path

import pytest

from tests.requirement import shows
from thermite.harness import candidate
from thermite.harness.candidate import Candidate, Refused
from thermite.kit.git import git, make_repository
from thermite.schema.stage import Entry

REF = "refs/attempts/a/1"
ID = {
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def entry(path: str, data: bytes, kind: str = "file") -> Entry:
    kinds = {"file": "file", "executable": "executable", "link": "link"}
    return Entry(path=path.encode(), kind=kinds[kind], data=data)  # type: ignore[arg-type]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    path = tmp_path / "project.git"
    make_repository(path)
    return path


@pytest.fixture
def base(repo: Path) -> str:
    files = {"src/a.c": b"int a;\n", "src/b.c": b"int b;\n", "README": b"hello\n"}
    rows = []
    for name, data in files.items():
        blob = git(repo, "hash-object", "-w", "--stdin", stdin=data).decode().strip()
        rows.append(f"100644 {blob}\t{name}\0")
    env = {"GIT_INDEX_FILE": str(repo / "first")}
    git(repo, "update-index", "-z", "--index-info", env=env, stdin="".join(rows).encode())
    tree = git(repo, "write-tree", env=env).decode().strip()
    return git(repo, "commit-tree", tree, "-m", "base", env=ID).decode().strip()


def make(
    repo: Path,
    base: str,
    files: dict[str, Entry],
    deletes: tuple[str, ...] = (),
    editable: tuple[str, ...] = ("**",),
) -> Candidate | Refused | None:
    commit = candidate.commit_files(repo, base, files, list(deletes), ref=REF, at_s=1)
    return candidate.inspect(repo, base, commit, list(editable), most_mib=1)


def test_changed_files_become_a_commit_on_the_base(repo: Path, base: str) -> None:
    odd = 'src/a "b"\t\\é.c'
    made = make(
        repo, base, {"src/a.c": entry("src/a.c", b"x"), odd: entry(odd, b"y\n")}, ("README",)
    )
    assert isinstance(made, Candidate)
    assert made.paths == sorted(["README", "src/a.c", odd])
    assert git(repo, "show", f"{made.commit}:{odd}") == b"y\n"
    assert git(repo, "rev-parse", f"{made.commit}^").decode().strip() == base
    assert git(repo, "rev-parse", REF).decode().strip() == made.commit


def test_the_same_change_is_the_same_commit(repo: Path, base: str) -> None:
    first = make(repo, base, {"x": entry("x", b"1")})
    assert first == make(repo, base, {"x": entry("x", b"1")})


@shows("G16")
def test_an_equal_tree_is_no_change(repo: Path, base: str) -> None:
    assert make(repo, base, {"src/a.c": entry("src/a.c", b"int a;\n")}) is None


@pytest.mark.parametrize(
    ("path", "kind", "reason"),
    [
        pytest.param("link", "link", "symbolic link", id="a link"),
        pytest.param(".kit", "file", ".git or .kit", id="the kit's place"),
        pytest.param(".KIT/x", "file", ".git or .kit", id="in any case"),
        pytest.param("a\nb", "file", "line break", id="a line break"),
    ],
)
def test_shapes_that_no_build_may_see_are_refused(
    repo: Path, base: str, path: str, kind: str, reason: str
) -> None:
    made = make(repo, base, {path: entry(path, b"x", kind)})
    assert isinstance(made, Refused)
    assert reason in made.reason
    assert made.paths == [path]


@pytest.mark.parametrize(
    ("patterns", "outside"),
    [
        pytest.param(["src/**"], ["README", "new"], id="a folder"),
        pytest.param(["*.c"], ["README", "new"], id="a suffix anywhere"),
        pytest.param(["**"], [], id="everything"),
        pytest.param(["*", "!README"], ["README"], id="everything but"),
        pytest.param(["/b.c"], ["README", "new", "src/a.c"], id="anchored"),
    ],
)
def test_only_editable_paths_may_change(
    repo: Path, base: str, patterns: list[str], outside: list[str]
) -> None:
    files = {name: entry(name, b"changed") for name in ("src/a.c", "new")}
    made = make(repo, base, files, ("README",), tuple(patterns))
    if outside:
        assert made == Refused("changed outside project.editable", outside)
    else:
        assert isinstance(made, Candidate)


@pytest.mark.parametrize(
    ("path", "kind", "reason"),
    [
        pytest.param(".kit/bench/build.sh", "file", ".git or .kit", id="R4-adds .kit"),
        pytest.param(".kit", "link", "symbolic link", id="R4-makes .kit a link"),
        pytest.param(
            "tests/check.py", "file", "changed outside project.editable", id="R4-not editable"
        ),
    ],
)
def test_a_candidate_that_weakens_its_own_test_is_refused_by_name(
    repo: Path, base: str, path: str, kind: str, reason: str
) -> None:
    changes = {path: entry(path, b"src", kind), "src/a.c": entry("src/a.c", b"int b;\n")}
    made = make(repo, base, changes, (), ("src/**", ".kit", ".kit/**"))
    assert isinstance(made, Refused)
    assert reason in made.reason
    assert made.paths == [path]


def test_a_file_that_becomes_a_folder_is_looked_at_as_both(repo: Path, base: str) -> None:
    made = make(repo, base, {"README/x": entry("README/x", b"1")}, ("README",), ("README/x",))
    assert made == Refused("changed outside project.editable", ["README"])


def test_a_tree_over_the_budget_is_refused(repo: Path, base: str) -> None:
    made = make(repo, base, {"big": entry("big", bytes((1 << 20) + 1))})
    assert isinstance(made, Refused)
    assert "budget.candidate_mib allows 1 MiB" in made.reason


PATCH = b"""diff --git a/src/a.c b/src/a.c
--- a/src/a.c
+++ b/src/a.c
@@ -1 +1 @@
-int a;
+long a;
"""


def test_a_patch_becomes_a_commit_or_does_not_apply(repo: Path, base: str) -> None:
    made = candidate.commit_patch(repo, base, PATCH, ref=REF, at_s=1)
    assert made is not None
    assert git(repo, "show", f"{made}:src/a.c") == b"long a;\n"
    assert candidate.commit_patch(repo, made, PATCH, ref=REF, at_s=1) is None
    assert candidate.commit_patch(repo, base, b"no patch", ref=REF, at_s=1) is None


def test_a_patch_can_not_reach_out_of_the_tree(repo: Path, base: str) -> None:
    evil = PATCH.replace(b"src/a.c", b"../../evil")
    assert candidate.commit_patch(repo, base, evil, ref=REF, at_s=1) is None
