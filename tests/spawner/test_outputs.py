"""What the spawner removes, weighs and copies: hostile folders by themselves, without a spawner."""

import hashlib
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from thermite.spawner import outputs, tree
from thermite.spawner.weighing import OverError, weigh


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    """What runs here runs in a process of its own elsewhere, and sets its umask for good."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def test_a_deep_and_closed_tree_is_removed_and_nothing_outside_it(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("4711")
    top = tmp_path / "top"
    top.mkdir()
    (top / "link").symlink_to(tmp_path)
    here = os.open(top, os.O_RDONLY)
    for _ in range(2000):
        os.mkdir("d" * 50, dir_fd=here)
        deeper = os.open("d" * 50, os.O_RDONLY, dir_fd=here)
        os.symlink("/etc/passwd", "l", dir_fd=here)
        os.close(here)
        here = deeper
    os.fchmod(here, 0)
    os.close(here)
    with opened(top) as fd:
        assert tree.empty(fd) == 4001
    assert list(top.iterdir()) == []
    assert canary.read_text() == "4711"


def test_removing_is_never_led_outside_by_a_swapped_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "canary").write_text("4711")
    top = tmp_path / "top"
    top.mkdir()
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for act in (
                (top / "x").mkdir,
                lambda: (top / "x").rename(top / "y"),
                lambda: (top / "x").symlink_to(outside),
                (top / "x").unlink,
            ):
                try:
                    act()
                except OSError:
                    continue

    thread = threading.Thread(target=swap)
    thread.start()
    for _ in range(100):
        with opened(top) as fd:
            tree.empty(fd)
    stop.set()
    thread.join()
    assert (outside / "canary").read_text() == "4711"


def _collected(work: Path, into: Path, paths: list[str], **limits: int) -> dict[str, object]:
    given: dict[str, Any] = {"entries": 100, "levels": 32, "total_bytes": 1 << 20, **limits}
    order = outputs.Order(paths=paths, owner=os.getuid(), **given)
    report = os.memfd_create("report")
    with opened(work) as source, opened(into) as target:
        outputs.collect(order, [source, target, report], lambda _: None)
    with os.fdopen(report, "rb") as file:
        file.seek(0)
        told: dict[str, object] = json.loads(file.read())
        return told


def test_a_collector_is_never_led_to_foreign_bytes_by_a_renamer(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "out").mkdir(parents=True)
    (tmp_path / "secret").write_text("foreign")
    stop = threading.Event()

    def swap() -> None:
        good, bad, name = work / "good", work / "bad", work / "out/a"
        while not stop.is_set():
            good.write_text("own")
            good.rename(name)
            bad.symlink_to(tmp_path / "secret")
            bad.rename(name)

    thread = threading.Thread(target=swap)
    thread.start()
    own = hashlib.sha256(b"own").hexdigest()
    kept = 0
    for number in range(1000):
        into = tmp_path / f"into{number}"
        into.mkdir()
        told = _collected(work, into, ["out"])
        for one in told["files"]:  # type: ignore[attr-defined]
            assert one["sha256"] in {own, hashlib.sha256(b"").hexdigest()}
            kept += 1
    stop.set()
    thread.join()
    assert kept


def test_limits_of_a_collection_hold_to_the_entry(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "out/d").mkdir(parents=True)
    (work / "out/d/f").write_text("12345")
    cases = (("out/", {"entries": 2}), ("out", {"entries": 3}), ("out/", {"levels": 2}))
    for number, (path, limits) in enumerate(cases):
        for less, good in ((0, True), (1, False)):
            into = tmp_path / f"into{number}{less}"
            into.mkdir()
            tight = {name: value - less for name, value in limits.items()}
            told = _collected(work, into, [path], **tight)
            assert (told["problems"] == []) is good, (path, tight, told)
            assert bool(list(into.iterdir())) is good


def test_the_whole_work_folder_is_collected_by_its_names(tmp_path: Path) -> None:
    work, into = tmp_path / "work", tmp_path / "into"
    (work / "a").mkdir(parents=True)
    into.mkdir()
    (work / "a/b").write_text("1")
    (work / "c").write_text("2")
    told = _collected(work, into, ["."])
    assert [one["path"] for one in told["files"]] == ["a/b", "c"]  # type: ignore[attr-defined]


def test_a_copy_has_the_holes_of_a_sparse_file_and_every_byte_of_it(tmp_path: Path) -> None:
    """P5: it would else take by its size what took nothing by its blocks."""
    work, into = tmp_path / "work", tmp_path / "into"
    for folder in (work, into):
        folder.mkdir()
    odd = (32 << 20) + 12345
    for name, at in (("end", odd), ("middle", 3 << 20), ("none", None)):
        with (work / name).open("wb") as file:
            file.write(b"begin")
            if at is not None:
                file.seek(at)
                file.write(b"here")
                file.truncate(max(at + 4, 8 << 20))
    told = _collected(work, into, ["."], total_bytes=64 << 20)
    for one in told["files"]:  # type: ignore[attr-defined]
        copy, raw = into / one["path"], (work / one["path"]).read_bytes()
        assert copy.read_bytes() == raw
        assert (one["size"], one["sha256"]) == (len(raw), hashlib.sha256(raw).hexdigest())
        assert copy.stat().st_blocks * 512 <= 4 << 20
    assert len(told["files"]) == 3  # type: ignore[arg-type]


def test_odd_names_are_shown_as_ascii() -> None:
    assert outputs.escaped(os.fsdecode(b"a\xff\x1b[31m\n\\")) == r"a\xff\x1b[31m\x0a\x5c"


def test_weighing_counts_an_inode_once_and_stops_at_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1" * 100_000)
    os.link(tmp_path / "a", tmp_path / "b")
    with opened(tmp_path) as fd:
        assert 100_000 <= weigh(fd, 1 << 30) < 150_000
        with pytest.raises(OverError):
            weigh(fd, 90_000)
