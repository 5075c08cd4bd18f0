"""Stage copies: what a slot may read of the harness's, whatever the harness's umask."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from thermite.rig.copies import Copy


@pytest.fixture
def closed() -> Iterator[None]:
    """The umask of a served rig's harness."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("closed")
def test_folders_on_the_way_to_a_file_can_be_entered_by_the_slot(tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text("pass\n")
    top = tmp_path / "copy"
    top.mkdir()
    copy = Copy(top)
    copy.add(source, "a/b/one.py")
    copy.add(source, "a/b/two.py")
    with copy.granted():
        assert {path.stat().st_mode & 0o777 for path in (top / "a", top / "a/b")} == {0o555}
        assert (top / "a/b/one.py").stat().st_mode & 0o777 == 0o444
    copy.add(source, "a/three.py")
    assert (top / "a/three.py").read_text() == "pass\n"


def test_a_copy_has_the_holes_of_a_sparse_file_and_every_byte_of_it(tmp_path: Path) -> None:
    """P5: it would else take by its size what took nothing by its blocks."""
    source, top = tmp_path / "sparse", tmp_path / "copy"
    top.mkdir()
    with source.open("wb") as file:
        file.write(b"begin")
        file.seek(8 << 20)
        file.write(b"here")
        file.truncate(32 << 20)
    Copy(top).add(source, "x")
    assert (top / "x").read_bytes() == source.read_bytes()
    assert (top / "x").stat().st_blocks * 512 <= 4 << 20
