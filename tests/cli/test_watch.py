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
        pytest.param("rig/of/mine", "is no folder", id="below nothing"),
    ],
)
def test_where_no_rig_will_come_it_does_not_wait(
    place: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    somebody_elses(tmp_path / "mine")
    assert run(["watch", "--state", str(tmp_path / place)]) == 3
    assert capsys.readouterr().err.endswith(f", and {tmp_path / place} {why}\n")


@pytest.mark.parametrize("command", ["watch", "status"])
def test_a_ledger_that_was_probably_meant_is_named(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A demo's folder has the rig's in it, and a ledger's file is no rig's folder."""
    (tmp_path / "demo/rig").mkdir(parents=True)
    ledger = tmp_path / "demo/rig/ledger.db"
    ledger.touch()
    assert run([command, "--state", str(tmp_path / "demo")]) == 3
    assert capsys.readouterr().err.endswith(f"/demo/ledger.db, and one at {tmp_path}/demo/rig\n")
    assert run([command, "--state", str(ledger)]) == 3
    assert f"{ledger} is a file, so give it with --ledger" in capsys.readouterr().err
