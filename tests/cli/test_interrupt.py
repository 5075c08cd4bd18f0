"""Ctrl-C on a command that judges: told as such, nobody is blamed, and the state goes on."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Final

import pytest

from thermite.ledger.replay import recorded
from thermite.schema import event as e
from thermite.shipped import shipped

KIT: Final = shipped("kits/demo-cpu")
BASE: Final = KIT / "candidates/base"
LONGEST_S: Final = 120.0
WAITS: Final = """
#include <unistd.h>
__attribute__((constructor)) static void wait_long(void) { sleep(600); }
"""


@contextlib.contextmanager
def started(*args: object) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a process group of its own, as a shell at a terminal does."""
    with subprocess.Popen(
        [sys.executable, "-m", "thermite", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def events(state: Path) -> list[object]:
    ledger = state / "ledger.db"
    return [row.event.data for row in recorded(ledger)] if ledger.exists() else []


def wait_for_a_build(state: Path) -> None:
    """Return when a candidate is built, and its first run begins."""
    deadline = time.monotonic() + LONGEST_S
    while not any(isinstance(event, e.Build) for event in events(state)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def wait_for_line(stream: IO[str] | None, wanted: str) -> None:
    assert stream is not None
    assert any(wanted in line for line in stream)


@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["the whole group", "the leader alone"])
def test_an_interrupted_judge_says_so_and_its_state_goes_on(
    send: Callable[[int, int], None], tmp_path: Path
) -> None:
    project, state = tmp_path / "project", tmp_path / "state"
    shutil.copytree(BASE, project)
    source = project / "matmul.c"
    source.write_text(source.read_text() + WAITS)
    where = ["--kit", KIT, "--state", state, "--cells", "even"]
    with started("judge", project, *where) as process:
        wait_for_a_build(state)
        send(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=LONGEST_S)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "error: interrupted"
    verdicts = [event.verdict for event in events(state) if isinstance(event, e.Verdict)]
    assert verdicts == ["cancelled"]
    assert isinstance(events(state)[-1], e.AssignmentEnded)
    with started("judge", BASE, *where) as process:
        assert process.wait(LONGEST_S) == 0
    with started("audit", state / "ledger.db", "--rejudge") as process:
        out, _ = process.communicate(timeout=LONGEST_S)
        assert process.returncode == 0, out


def test_a_judge_that_was_killed_leaves_a_job_that_the_next_one_ends(tmp_path: Path) -> None:
    project, state = tmp_path / "project", tmp_path / "state"
    shutil.copytree(BASE, project)
    (project / "matmul.c").write_text((BASE / "matmul.c").read_text() + WAITS)
    where = ["--kit", KIT, "--state", state, "--cells", "even"]
    with started("judge", project, *where) as process:
        wait_for_a_build(state)
        process.kill()
    with started("judge", BASE, *where) as process:
        _, err = process.communicate(timeout=LONGEST_S)
        assert process.returncode == 0, err
    ends = [event.reason for event in events(state) if isinstance(event, e.AssignmentEnded)]
    assert ends == ["interrupted", "local job"]


def test_an_interrupted_kit_test_says_so() -> None:
    with started("kit", "test", KIT, "--only", "08-comment-only") as process:
        wait_for_line(process.stderr, "measuring base")
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=LONGEST_S)
    assert (process.returncode, out, err.strip()) == (130, "", "error: interrupted")
