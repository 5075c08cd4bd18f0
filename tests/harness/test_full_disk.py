"""A disk that fills up under a worker: words, no fault of ours, and nothing lost that was kept."""

import errno
import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.test_meter import dying_when_its_worker_ends
from tests.harness.test_worker import stopped_campaign
from tests.serving import ROOT
from tests.simulated_campaign import Life
from tests.walk.test_broken_rigs import FULL, fill
from thermite.errors import (
    InfrastructureError,
    LedgerBusyError,
    LedgerError,
    LedgerUnavailableError,
    UsageError,
)
from thermite.harness.ending import cut_short, not_begun
from thermite.ledger.replay import recorded
from thermite.rig.start import spawner
from thermite.schema.event import AgentFinished

STATE = Path("/srv/rig")
SAYS = "yes thermite | head -n 80000"
SAID = (b"thermite\n" * 80_000)[-(64 << 10) :]
"""What is kept of a worker's output."""
ROOM = 80 << 10
"""Enough to go on with the ledger (32 KiB are its shared memory), and too little for that."""


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        pytest.param(LedgerError("damaged"), 78, "damaged", id="ledger"),
        pytest.param(UsageError("rig.toml: x"), 78, "rig.toml: x", id="settings"),
        pytest.param(LedgerUnavailableError("full"), 1, "full", id="the ledger's disk"),
        pytest.param(LedgerBusyError("process 7"), 1, "process 7", id="another writer"),
        pytest.param(InfrastructureError("no stage"), 1, "no stage", id="a stage"),
        pytest.param(
            OSError(errno.ENOSPC, "No space left on device", "/srv/rig/keys"),
            1,
            "/srv/rig/keys: No space left on device: make room in /srv/rig",
            id="full",
        ),
        pytest.param(
            PermissionError(errno.EACCES, "Permission denied", "/srv/rig/keys"),
            78,
            f"/srv/rig/keys: Permission denied: let user {os.geteuid()} use it,"
            " whose harness this is",
            id="closed",
        ),
    ],
)
def test_a_start_that_fails_says_whether_another_may_do_better(
    error: LedgerError | OSError, code: int, says: str
) -> None:
    ending = not_begun(error, STATE)
    assert (ending.code, ending.said) == (code, says)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        pytest.param(
            OSError(errno.ENOSPC, "No space left on device"),
            "/srv/rig: No space left on device: make room in /srv/rig; nothing was promised",
            id="full",
        ),
        pytest.param(
            OSError(errno.EIO, "Input/output error", "/srv/rig/blobs"),
            "/srv/rig/blobs: Input/output error: look after the disk in /srv/rig; nothing was"
            " promised",
            id="broken",
        ),
    ],
)
def test_a_disk_that_fails_at_work_is_no_fault_of_ours(error: OSError, says: str) -> None:
    """It was a traceback, and `a fault of ours`."""
    ending = cut_short(error, STATE)
    assert (ending.code, ending.said) == (1, says)


def test_a_fault_of_ours_is_called_so() -> None:
    ending = cut_short(KeyError("x"), STATE)
    assert ending.code == 70
    assert ending.said.startswith("a fault of ours; it is started again and goes on:\n")
    assert ending.said.endswith("KeyError: 'x'")


def test_what_a_killed_worker_said_waits_for_room(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    inside = ["unshare", "--mount", "sh", "-c", FULL, str(small)]
    able = os.getuid() == 0 and subprocess.run([*inside, "true"], check=False).returncode == 0
    if not able:
        pytest.skip("no filesystem can be mounted here: this needs root and CAP_SYS_ADMIN")
    argv = [sys.executable, "-c", f"from {__name__} import full; full({str(small)!r})"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*inside, *argv], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def full(small: str) -> None:
    """What the test above does, where `small` is a filesystem of its own."""
    place = Path(small)
    with spawner(place / "rig", isolation="none") as stages:
        life = stopped_campaign(place / "home", stages, SAYS, attempts=1)
        assert not dying_when_its_worker_ends(life).run()
        # As a kill leaves it that comes a moment earlier, before the worker has ended.
        (life.home.rig.blobs / hashlib.sha256(SAID).hexdigest()).unlink()
        ballast = place / "ballast"
        fill(ballast)
        os.truncate(ballast, ballast.stat().st_size - ROOM)
        with pytest.raises(OSError, match="No space left"):
            Life(life.home).run()
        ballast.unlink()
        life = Life(life.home)
        life.bench = replace(life.bench, stages=stages)
        assert life.run()
    told = [row.event.data for row in recorded(life.home.rig.ledger)]
    ends = [one for one in told if isinstance(one, AgentFinished)]
    assert [(one.status, one.partial) for one in ends] == [("killed", True), ("ok", False)]
    for one in ends:
        assert (life.home.rig.blobs / str(one.transcript)).read_bytes() == SAID
