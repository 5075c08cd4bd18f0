"""A stage's output as it comes, in a file: its end is there whenever the writer is killed."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.open_folder import open_folder
from thermite.rig.output_log import CHUNK, HEAD, open_log, read_log
from thermite.spawner.output_log import OutputLog, check_log
from thermite.spawner.vocabulary import RefusedError

KIB = 1
SIZES = st.lists(st.integers(1, CHUNK), max_size=6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log"


def chunks(sizes: list[int]) -> Iterator[bytes]:
    for number, size in enumerate(sizes, 1):
        yield (bytes([number]) + b"%d" % size * size)[:size]


@given(SIZES)
def test_the_end_of_what_was_said_is_read_whole(sizes: list[int]) -> None:
    with open_folder() as folder, open_log(folder / "log", KIB) as fd:
        log = OutputLog(fd)
        said = b""
        for chunk in chunks(sizes):
            log.add(chunk)
            said += chunk
            assert read_log(folder / "log") == said[-1024:]


@given(SIZES, st.integers(1, CHUNK))
def test_a_kill_between_two_writes_costs_a_chunk_and_tears_nothing(
    sizes: list[int], last: int
) -> None:
    with open_folder() as folder, open_log(folder / "log", KIB) as fd:
        log = OutputLog(fd)
        for chunk in chunks(sizes):
            log.add(chunk)
        before, head = read_log(folder / "log"), os.pread(fd, HEAD, 0)
        log.add(b"\xff" * last)
        os.pwrite(fd, head, 0)
        assert read_log(folder / "log") == before


def test_a_disk_that_refuses_costs_the_rest_and_no_error(path: Path) -> None:
    with open_log(path, KIB) as fd:
        OutputLog(fd).add(b"early")
    reading = os.open(path, os.O_RDONLY)
    try:
        OutputLog(reading).add(b"late")
    finally:
        os.close(reading)
    assert read_log(path) == b"early"


def test_what_was_never_begun_is_nothing(path: Path) -> None:
    assert read_log(path) == b""
    path.touch()
    assert read_log(path) == b""
    path.write_bytes(b"\xff" * HEAD)
    assert read_log(path) == b""


def test_a_link_is_no_place_for_a_log(path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"), open_log(path, KIB):
        pass


@pytest.mark.parametrize(
    ("joined", "size", "words"),
    [(False, 1 << 20, "joined output only"), (True, HEAD + CHUNK, "a file of more than 65544")],
)
def test_a_log_that_could_not_be_kept_is_refused(
    path: Path, *, joined: bool, size: int, words: str
) -> None:
    path.write_bytes(bytes(size))
    with path.open("r+b") as file, pytest.raises(RefusedError, match=words):
        check_log({"join_output": joined}, [file.fileno()])


def test_no_descriptor_is_no_log() -> None:
    with pytest.raises(RefusedError, match="a file of more than"):
        check_log({"join_output": True}, [])
