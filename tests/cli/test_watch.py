"""`thermite watch` before there is a ledger: it says what it waits for, or that nothing comes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from thermite.cli.root import run


def empty(folder: Path) -> None:
    folder.mkdir()


def named(folder: Path) -> None:
    folder.mkdir()
    (folder / "rig.toml").write_text('name = "bench"\n')


def somebody_elses(folder: Path) -> None:
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda _: None, id="not made yet"),
        pytest.param(empty, id="empty"),
        pytest.param(named, id="a rig's"),
    ],
)
def test_it_says_at_once_what_it_waits_for(
    make: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "rig")
    assert run(["watch", "--state", str(tmp_path / "rig"), "--timeout", "0"]) == 7
    first = capsys.readouterr().err.splitlines()[0]
    ledger = tmp_path / "rig/ledger.db"
    assert first == f"there is no ledger at {ledger} yet: waiting for thermite rig serve to open it"


@pytest.mark.parametrize(
    ("place", "why"),
    [
        pytest.param("mine", "is no rig's folder", id="somebody else's"),
        pytest.param("mine/thesis.txt", "is no folder", id="a file"),
        pytest.param("rig/of/mine", "is no folder", id="below nothing"),
    ],
)
def test_where_no_rig_will_come_it_does_not_wait(
    place: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    somebody_elses(tmp_path / "mine")
    assert run(["watch", "--state", str(tmp_path / place)]) == 3
    assert capsys.readouterr().err.endswith(f", and {tmp_path / place} {why}\n")
