"""Whoever reads a live ledger slowly, its log starts over; who holds it is told of (L7)."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from tests.ledger.facts import Facts
from tests.requirement import shows
from thermite.cli.root import run
from thermite.ledger.append import Ledger
from thermite.ledger.tables import LARGE_LOG_BYTES
from thermite.schema.event import IsolationProbe

ROOT = Path(__file__).resolve().parents[2]
SECOND = 200
"""Events of a second, as the row says; of 512 bytes, as the mean event is."""
SECONDS = 200
MOST_LOG = 8 << 20
"""SQLite starts the log over at 4 MiB, once nobody is within a read: much slack."""
READERS = {
    "export": ["ledger", "export"],
    "tail": ["ledger", "tail", "-n", "100000", "--follow", "--json"],
    "watch": ["watch", "--json", "--ledger"],
}


def grow(ledger: Ledger, facts: Facts, count: int = SECOND, size: int = 200) -> None:
    """Append so many events, which mean something without a campaign, at once."""
    probe = IsolationProbe(level="none", features=[], gaps=["x" * size], canaries={})
    ledger.append([facts.event(probe, assignment=None) for _ in range(count)])


def log_of(path: Path) -> int:
    return path.with_name(f"{path.name}-wal").stat().st_size


def status(path: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str | None, str]:
    """What `thermite status` says of the log: its size, what is wrong, and the text."""
    capsys.readouterr()
    assert run(["status", "--ledger", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert run(["status", "--ledger", str(path)]) == 0
    return told["wal_bytes"], told["log"], capsys.readouterr().out


@contextmanager
def reading(name: str, path: Path) -> Iterator["subprocess.Popen[str]"]:
    """One of our commands that has printed its first line; its pipe is all that it may fill."""
    argv = [sys.executable, "-m", "thermite", *READERS[name], str(path)]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline()
            yield process
        finally:
            process.kill()


@shows("L7")
def test_commands_that_are_read_slowly_do_not_make_the_log_grow(
    ledger: Ledger, facts: Facts, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """200 seconds' events for the row's hour, one line read of each command a second."""
    for _ in range(5):
        grow(ledger, facts)
    with ExitStack() as stack:
        readers = [stack.enter_context(reading(name, path)) for name in READERS]
        for _ in range(SECONDS):
            grow(ledger, facts)
            assert all(reader.stdout and reader.stdout.readline() for reader in readers)
            assert log_of(path) < MOST_LOG
        assert path.stat().st_size > 2 * MOST_LOG, "what went through would not fit in the log"
        assert [reader.poll() for reader in readers] == [None] * 3
        size, problem, text = status(path, capsys)
        assert (size, problem) == (log_of(path), None)
        assert f"write-ahead log {size} bytes\n" in text
        rest, _ = readers[0].communicate()
        assert readers[0].returncode == 0
        assert json.loads(rest.splitlines()[-1])["seq"] == ledger.size


@shows("L7")
def test_a_program_that_holds_one_view_is_told_of_and_the_log_is_cut_when_it_ends(
    ledger: Ledger, facts: Facts, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grow(ledger, facts)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as foreign:
        held = foreign.execute("SELECT seq FROM events")
        assert held.fetchone() == (1,)
        while log_of(path) <= LARGE_LOG_BYTES:
            grow(ledger, facts, 500, 4000)
        size, problem, text = status(path, capsys)
        assert size == log_of(path) > LARGE_LOG_BYTES
        assert problem is not None
        assert problem.startswith(f"it grows while a program holds one view of {path} open: end")
        assert f"log: {problem}\n" in text
        held.close()
    for _ in range(2):  # one to copy the log into the file, one to start it over
        grow(ledger, facts)
    size, problem, text = status(path, capsys)
    assert (size <= LARGE_LOG_BYTES, problem) == (True, None)
    assert "log: " not in text
