"""A rig that can't answer says so in its status, whatever lies in place of its outbox."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.ledger.facts import Facts
from tests.requirement import shows
from thermite.audit.outbox import outbox_problem
from thermite.cli.root import run
from thermite.command.instant import read_instant
from thermite.command.note import read_note
from thermite.ledger.append import Ledger
from thermite.schema.command import TrustedKey
from thermite.schema.event import TrustSet

LOCAL = Path(__file__).parents[1] / "golden/promotion/ledger.db"
"""Of a rig that trusts nobody, and so owes nobody a receipt."""


@pytest.fixture
def rig(ledger: Ledger, facts: Facts, path: Path) -> Path:
    """A rig's folder: two checkpoints, of event 1 and of the trust that followed."""
    key = TrustedKey(id="e1" * 16, public="AA", label="laptop", roles=["root", "command"])
    ledger.append([facts.event(TrustSet(version=1, keys=[key], by="local"), assignment=None)])
    ledger.close()
    (path.parent / "outbox").mkdir()
    return path.parent


def notes(rig: Path) -> list[bytes]:
    with closing(sqlite3.connect(rig / "ledger.db")) as file:
        return [note for (note,) in file.execute("SELECT note FROM checkpoints ORDER BY size")]


def said(rig: Path, capsys: pytest.CaptureFixture[str]) -> object:
    assert run(["status", "--state", str(rig), "--json"]) == 0
    return json.loads(capsys.readouterr().out)["outbox"]


@shows("K12")
def test_an_outbox_that_is_as_new_as_the_ledger_is_not_mentioned(
    rig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rig / "outbox" / "checkpoint").write_bytes(notes(rig)[-1])
    assert said(rig, capsys) is None
    assert run(["status", "--state", str(rig)]) == 0
    assert "outbox" not in capsys.readouterr().out


@shows("K12")
def test_an_outbox_that_could_not_be_written_is_behind(
    rig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rig / "outbox" / "checkpoint").write_bytes(notes(rig)[0])
    assert run(["status", "--state", str(rig)]) == 0
    assert (
        "outbox: the outbox is behind: its newest checkpoint is of event 1, and the ledger's of"
        in (capsys.readouterr().out)
    )


@shows("K12")
def test_a_checkpoint_has_a_minute_to_reach_the_outbox(rig: Path) -> None:
    first, last = notes(rig)
    (rig / "outbox" / "checkpoint").write_bytes(first)
    made = read_instant(read_note(last.decode()).time)
    problems = [
        outbox_problem(rig / "ledger.db", rig / "outbox", made + timedelta(seconds=after))
        for after in (0, 59, 61)
    ]
    assert [problem is None for problem in problems] == [True, True, False]


@shows("K12")
def test_an_outbox_that_is_gone_is_named_for_a_rig_and_not_for_a_copy(
    rig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rig / "outbox").rmdir()
    assert str(said(rig, capsys)).startswith("there is no outbox at ")
    assert run(["status", "--ledger", str(rig / "ledger.db"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outbox"] is None


@shows("K12")
def test_who_takes_no_orders_owes_no_receipts(
    rig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(LOCAL, rig / "ledger.db")
    assert said(rig, capsys) is None


@shows("K12")
@pytest.mark.parametrize(
    "put",
    [
        pytest.param(os.mkfifo, id="pipe"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), id="link"),
        pytest.param(lambda path: path.mkdir(), id="folder"),
        pytest.param(lambda path: path.write_bytes(b"\xff" * 9000), id="noise"),
    ],
)
def test_what_is_no_checkpoint_counts_as_none(rig: Path, put: Callable[[Path], object]) -> None:
    put(rig / "outbox" / "checkpoint")
    problem = outbox_problem(rig / "ledger.db", rig / "outbox", datetime.now(UTC))
    assert problem is not None
    assert "is of event 0" in problem
