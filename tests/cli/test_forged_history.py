"""A ledger whose hashes fit and whose history nobody lived through: its readers take no harm."""

import json
import shutil
import sqlite3
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.audit.forger import rechain
from thermite.cli.root import run

GOLDEN = Path(__file__).parents[1] / "golden/promotion/ledger.db"
FORGED: Mapping[str, tuple[str, tuple[str, ...], object]] = {
    "a campaign that nobody began": ("mcp_servers", ("assignment",), "nobody's"),
    "an attempt that nobody began": ("champion_promoted", ("data", "attempt"), 1000),
    "a verdict on nothing": ("verdict", ("data", "attempt"), 77),
    "a contract that is none": ("assignment_created", ("data", "contract", "name"), "\u202e"),
}
READERS = (
    ("status",),
    ("verdicts",),
    ("show", "1"),
    ("show", "1", "--json"),
    ("watch", "--until", "ended"),
    ("campaign", "report"),
    ("campaign", "report", "--form", "html"),
)


def drop_triggers(connection: sqlite3.Connection) -> None:
    found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for (name,) in found:
        connection.execute(f"DROP TRIGGER {name}")


def forged(folder: Path, kind: str, place: tuple[str, ...], value: object) -> Path:
    """Return a copy of the golden ledger, one value of its first event of a kind put anew."""
    ledger = folder / "ledger.db"
    shutil.copyfile(GOLDEN, ledger)
    with sqlite3.connect(ledger) as connection:
        drop_triggers(connection)
        seq, body = connection.execute(
            "SELECT seq, body FROM events WHERE type = ? ORDER BY seq", (kind,)
        ).fetchone()
        event: dict[str, Any] = json.loads(body)
        inner = event
        for name in place[:-1]:
            inner = inner[name]
        inner[place[-1]] = value
        raw = json.dumps(event, separators=(",", ":")).encode()
        connection.execute("UPDATE events SET body = ? WHERE seq = ?", (raw, seq))
        rechain(connection)
    connection.close()
    return ledger


@pytest.mark.parametrize("what", FORGED)
def test_every_reader_says_that_the_history_has_no_meaning(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = str(forged(tmp_path, *FORGED[what]))
    for reader in READERS:
        code = run([*reader, "--ledger", ledger])
        said = "".join(capsys.readouterr())
        assert (reader, code) == (reader, 1)
        assert "has no meaning after the events before it" in said, reader
        assert "run thermite audit" in said, reader
    assert run(["audit", ledger]) == 8


HOSTILE = "5'\ntouch evil\n\"$(touch evil)`touch evil`\nEND\ntouch evil\n"


@pytest.mark.parametrize("what", ["campaign", "base", "commit", "kit's commit"])
def test_no_text_of_a_ledger_is_a_command_of_its_script(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = tmp_path / "ledger.db"
    shutil.copyfile(GOLDEN, ledger)
    with sqlite3.connect(ledger) as connection:
        drop_triggers(connection)
        bodies = connection.execute("SELECT type, body FROM events ORDER BY seq").fetchall()
        begun, made, sent = (
            json.loads(next(body for kind, body in bodies if kind == wanted))
            for wanted in ("attempt_started", "assignment_created", "candidate_submitted")
        )
        old = {
            "campaign": made["assignment"],
            "base": begun["data"]["base"],
            "commit": sent["data"]["commit"],
            "kit's commit": made["data"]["kit"]["commit"],
        }[what]
        changed = (json.dumps(old), json.dumps(HOSTILE))
        connection.execute("UPDATE events SET body = CAST(replace(body, ?, ?) AS BLOB)", changed)
        rechain(connection)
    connection.close()
    run(["show", "1", "--repro", "--ledger", str(ledger)])
    script = capsys.readouterr().out
    (tmp_path / "script").write_text(script)
    subprocess.run(["sh", "script"], cwd=tmp_path, check=False, capture_output=True)
    assert script.startswith("#!/bin/sh") or what != "campaign"
    assert not list(tmp_path.rglob("evil"))
