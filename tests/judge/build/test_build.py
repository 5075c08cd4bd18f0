"""Keys, sources and the store of builds, on real files."""

import os
from pathlib import Path

import msgspec
import pytest

from tests.requirement import shows
from thermite.errors import InfrastructureError
from thermite.judge.build.key import build_key
from thermite.judge.build.source import source_entries
from thermite.judge.build.store import BuildStore, StoredBuild, StoredFile, verify_copy
from thermite.schema.ids import BuildKey
from thermite.schema.kit import BuildSection
from thermite.schema.stage import Entry

SECTION = BuildSection(command=["make"], outputs=["out"])
KEY = BuildKey("a" * 64)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(("2" * 40, "k" * 40, SECTION, "cc 12"), id="commit"),
        pytest.param(("1" * 40, "j" * 40, SECTION, "cc 12"), id="kit"),
        pytest.param(("1" * 40, "k" * 40, SECTION, "cc 13"), id="toolchain"),
        pytest.param(
            ("1" * 40, "k" * 40, msgspec.structs.replace(SECTION, timeout_s=601), "cc 12"),
            id="build section",
        ),
    ],
)
@shows("K-170")
def test_a_key_changes_with_each_of_its_parts(other: tuple[str, str, BuildSection, str]) -> None:
    assert build_key("1" * 40, "k" * 40, SECTION, "cc 12") != build_key(*other)


@shows("K-170", "D55")
def test_a_default_that_is_written_out_is_the_same_key() -> None:
    same = BuildSection(command=["make"], outputs=["out"], copy=[], timeout_s=600, disk_mib=4096)
    assert build_key("1" * 40, "k" * 40, same, "cc") == build_key("1" * 40, "k" * 40, SECTION, "cc")


def kit(tmp_path: Path) -> Path:
    folder = tmp_path / "kit"
    (folder / "bench" / "deep").mkdir(parents=True)
    (folder / "bench" / "build.sh").write_text("make\n")
    (folder / "bench" / "build.sh").chmod(0o755)
    (folder / "bench" / "deep" / "x.h").write_text("x")
    (folder / "secret").write_text("never copied")
    return folder


@shows("K-100")
def test_the_kits_files_lie_below_dot_kit(tmp_path: Path) -> None:
    made = source_entries([], kit(tmp_path), ["bench"], ["out"])
    assert {(e.path, e.kind) for e in made} == {
        (b".kit/bench", "folder"),
        (b".kit/bench/build.sh", "executable"),
        (b".kit/bench/deep", "folder"),
        (b".kit/bench/deep/x.h", "file"),
    }


def test_declared_outputs_that_a_commit_holds_are_left_out(tmp_path: Path) -> None:
    tree = [
        Entry(path=path, kind="file")
        for path in (b"main.c", b"out", b"out/x", b"outer", b"lib/out")
    ]
    made = source_entries(tree, kit(tmp_path), [], ["out"])
    assert [e.path for e in made] == [b"main.c", b"outer", b"lib/out"]


@pytest.mark.parametrize(
    ("path", "why"),
    [
        pytest.param("none", "kit build.copy: none is not in the kit", id="missing"),
        pytest.param("link", "kit build.copy: not a regular file or directory: link", id="a link"),
        pytest.param(
            "through/build.sh",
            "kit build.copy: not a regular file or directory: through/build.sh",
            id="through a link",
        ),
        pytest.param(
            "around", "kit build.copy: not a regular file or directory: around/link", id="inside"
        ),
        pytest.param("pipe", "kit build.copy: not a regular file or directory: pipe", id="a pipe"),
    ],
)
def test_a_kit_file_is_a_plain_file(tmp_path: Path, path: str, why: str) -> None:
    folder = kit(tmp_path)
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "through").symlink_to("bench")
    (folder / "around").mkdir()
    (folder / "around" / "link").symlink_to("../secret")
    os.mkfifo(folder / "pipe")
    with pytest.raises(InfrastructureError) as raised:
        source_entries([], folder, [path], ["out"])
    assert str(raised.value) == why


def kept(tmp_path: Path) -> tuple[BuildStore, StoredBuild]:
    store = BuildStore(tmp_path / "store")
    place = store.empty_place(KEY)
    (place / "out" / "deep").mkdir(parents=True)
    (place / "out" / "bench").write_bytes(b"program")
    (place / "out" / "bench").chmod(0o700)
    (place / "out" / "deep" / "table").write_bytes(b"1 2 3")
    return store, store.keep(KEY)


@shows("K-134")
def test_a_build_is_kept_read_only_with_its_hashes(tmp_path: Path) -> None:
    store, build = kept(tmp_path)
    assert store.find(KEY) == build
    assert {file.path: file.mode for file in build.files} == {
        "out/bench": 0o555,
        "out/deep/table": 0o444,
    }
    modes = {
        str(path.relative_to(store.files(KEY))): path.stat().st_mode & 0o777
        for path in store.files(KEY).rglob("*")
    }
    assert modes == {"out": 0o555, "out/deep": 0o555, "out/bench": 0o555, "out/deep/table": 0o444}


def test_the_digest_of_outputs_is_over_path_mode_and_content() -> None:
    def digest(*files: StoredFile) -> str:
        build = StoredBuild(key=KEY, failure=None, reason=None, files=list(files))
        return build.outputs_digest

    one = StoredFile(path="a", mode=0o555, sha256="1" * 64)
    two = StoredFile(path="b", mode=0o444, sha256="2" * 64)
    assert digest(one, two) == digest(two, one)
    changed = [msgspec.structs.replace(one, **c) for c in ({"path": "c"}, {"mode": 0o444})]
    changed.append(msgspec.structs.replace(one, sha256="3" * 64))
    assert len({digest(x, two) for x in (one, *changed)}) == 4


@pytest.mark.parametrize(
    ("change", "named"),
    [
        pytest.param(lambda f: (f / "out/bench").write_bytes(b"Program"), "out/bench", id="byte"),
        pytest.param(lambda f: (f / "out/bench").chmod(0o444), "out/bench", id="mode"),
        pytest.param(lambda f: (f / "out/deep/table").unlink(), "out/deep/table", id="gone"),
        pytest.param(lambda f: (f / "out/new").write_bytes(b""), "out/new", id="new"),
        pytest.param(lambda f: (f / "link").symlink_to("/etc"), "link", id="a link to a folder"),
        pytest.param(
            lambda f: ((f / "out/bench").unlink(), (f / "out/a\tb").write_bytes(b"")),
            r"out/a\x09b, out/bench",
            id="all are named, escaped",
        ),
    ],
)
@shows("K-134")
def test_any_change_of_a_copy_is_tampering(tmp_path: Path, change: object, named: str) -> None:
    store, build = kept(tmp_path)
    copy = store.files(KEY)
    verify_copy(build, copy)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
    change(copy)  # type: ignore[operator]
    with pytest.raises(InfrastructureError) as raised:
        verify_copy(build, copy)
    assert str(raised.value) == f"build store tampered: {KEY} {named}"


def test_a_record_that_cannot_be_read_is_tampering(tmp_path: Path) -> None:
    store, _ = kept(tmp_path)
    (tmp_path / "store" / KEY / "record.json").write_text("{}")
    with pytest.raises(InfrastructureError, match=f"build store tampered: {KEY} record.json"):
        store.find(KEY)


def test_what_is_known_of_a_key_can_be_replaced(tmp_path: Path) -> None:
    store, build = kept(tmp_path)
    store.remember_failure(KEY, "build_failed", "build: build failed (exit 1)")
    found = store.find(KEY)
    assert found is not None
    assert (found.failure, found.files) == ("build_failed", [])
    assert kept(tmp_path)[1] == build


@shows("K-173")
def test_a_build_that_a_limit_ended_is_not_remembered(tmp_path: Path) -> None:
    store = BuildStore(tmp_path)
    store.remember_failure(KEY, "build_killed", "build: build killed (disk)")
    assert store.find(KEY) is None


@shows("B3")
def test_builds_of_another_processor_are_thrown_away_and_told(tmp_path: Path) -> None:
    store = BuildStore(tmp_path)
    assert store.keep_only_of("A 7") is None  # nothing was known of what is there
    (store.empty_place(KEY) / "bench").write_text("for this processor alone")
    store.keep(KEY)
    assert store.keep_only_of("A 7") is None
    assert store.find(KEY) is not None
    assert store.keep_only_of("B 1") == "A 7"
    assert store.find(KEY) is None
    assert [path.name for path in tmp_path.iterdir()] == ["processor"]
    assert store.keep_only_of("B 1") is None
