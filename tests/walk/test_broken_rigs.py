"""What a rig says when its project, its disk or a second rig is in the way."""

import contextlib
import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.sleeper import lay_out, nap
from tests.served import PATIENCE_S, ServedRig, served
from tests.serving import ROOT, ended

PROBED = {
    "ok": True,
    "level": "none",
    "features": [],
    "network": "open",
    "gaps": [],
    "slots": {},
    "run_cpus": [0],
    "path": "/usr/bin:/bin",
    "stage_root": "/nonexistent",
}
"""What a spawner answers to a harness that has just started."""
QUICK = {"01-quick": nap(0.05)}


@pytest.fixture
def rig(home: Path) -> Iterator[ServedRig]:
    with served(home, users=False) as one:
        yield one


def assert_went_on(rig: ServedRig, *results: str) -> None:
    """The campaign came to its own end with one of these, and the ledger is whole."""
    rig.until(lambda: ended(rig), 300)
    assert rig.assignment is not None
    attempts = rig.assignment.attempts.values()
    [result] = [a.result for a in attempts if a.result != "killed"]
    assert result in results, [one.verdict for one in attempts]
    rig.stop()
    ledger, outbox = rig.state_folder / "ledger.db", rig.state_folder / "outbox"
    assert rig.told("audit", str(ledger), "--against", str(outbox))["findings"] == []


@pytest.mark.parametrize(
    ("base", "words"),
    [
        pytest.param("if\n", "the selftest could not build", id="does not build"),
        pytest.param(nap(0.1, says="wrong"), "the answer is not right", id="is wrong"),
        pytest.param("printf '\\033[2J' >&2; exit 3\n", "exit 3: \\x1b[2J", id="crashes"),
    ],
)
def test_a_project_that_does_not_work_ends_its_campaign_in_words_and_spends_no_attempt(
    rig: ServedRig, home: Path, base: str, words: str
) -> None:
    contract = lay_out(home, base=base, candidates=QUICK)
    rig.serve_until_there()
    rig.know()
    rig.assign(contract, "--wait")
    rig.until(lambda: ended(rig))
    assert rig.assignment is not None
    assert str(rig.assignment.end_reason).startswith("infrastructure: ")
    assert words in str(rig.assignment.end_reason)
    assert not rig.assignment.attempts
    shown = rig.run("status", "--state", str(rig.state_folder))
    assert words in shown.stdout
    assert "\x1b" not in shown.stdout
    assert rig.exit_codes() == []


def test_a_rig_is_served_once(rig: ServedRig) -> None:
    rig.serve_until_there()
    size = rig.size
    again = rig.run("rig", "serve", "--state", str(rig.state_folder))
    assert again.returncode == 10
    assert "another rig runs in" in again.stderr
    assert "stop it first" in again.stderr
    assert rig.child("harness") is not None
    assert rig.size == size


def test_a_ledger_has_one_harness(rig: ServedRig) -> None:
    rig.serve_until_there()
    size = rig.size
    spawner, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with spawner, its_end:
        fd = its_end.fileno()
        second = subprocess.Popen(
            [sys.executable, "-m", "thermite.harness"],
            env=rig.env
            | {"THERMITE_STATE": str(rig.state_folder)}
            | dict.fromkeys(("THERMITE_FD_SPAWNER", "THERMITE_FD_PEER"), str(fd)),
            pass_fds=(fd,),
            stderr=subprocess.PIPE,
        )
        asked = json.loads(spawner.recv(1 << 16))
        spawner.send(json.dumps({"id": asked["id"], **PROBED}).encode())
        _, said = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 1
    harness = rig.child("harness")
    assert harness is not None
    assert f"process {harness.pid}" in said.decode()
    assert "Traceback" not in said.decode()
    assert rig.size == size


def test_an_append_that_the_disk_refuses_is_no_loss(rig: ServedRig, home: Path) -> None:
    contract = lay_out(home, candidates=QUICK)
    rig.serve_until_there()
    rig.know()
    rig.assign(contract, "--wait")
    rig.until(lambda: rig.assignment is not None and rig.assignment.used_k)
    harness = rig.child("harness")
    assert harness is not None
    # No file of this process grows beyond what the log has now; its successor is free again.
    log = rig.state_folder / "ledger.db-wal"
    hard = harness.rlimit(resource.RLIMIT_FSIZE)[1]
    harness.rlimit(resource.RLIMIT_FSIZE, (log.stat().st_size, hard))
    rig.until(lambda: "harness ended with 1" in rig.said())
    assert "ledger unavailable: " in rig.said()
    assert f"nothing was promised: look after the disk in {rig.state_folder}" in rig.said()
    assert "Traceback" not in rig.said()
    assert_went_on(rig, "promoted")


FULL = """
set -eu
mount -t tmpfs -o size=24m tmpfs "$0"
exec "$@"
"""


def test_a_full_disk_stops_a_rig_in_words_and_room_lets_it_go_on(home: Path) -> None:
    state = home / "rig"
    state.mkdir()
    inside = ["unshare", "--mount", "sh", "-c", FULL, str(state)]
    able = os.getuid() == 0 and subprocess.run([*inside, "true"], check=False).returncode == 0
    if not able:
        pytest.skip("no filesystem can be mounted here: this needs root and CAP_SYS_ADMIN")
    argv = [sys.executable, "-c", f"from {__name__} import full; full({str(home)!r})"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*inside, *argv], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "went on\n"


def full(home: str) -> None:
    """What the test above does, where home/rig is a small filesystem of its own."""
    with served(Path(home), users=False) as rig:
        contract = lay_out(rig.home, candidates=QUICK)
        rig.serve_until_there()
        rig.know()
        rig.assign(contract, "--wait")
        rig.until(lambda: rig.assignment is not None and rig.assignment.used_k)
        ballast = rig.state_folder / "ballast"
        # Meanwhile a stage comes to its end, and what it had is free again before the disk is full.
        working = rig.child("harness")
        assert working is not None
        working.suspend()
        time.sleep(0.5)
        fill(ballast)
        working.resume()
        rig.until(lambda: rig.exit_codes() or ended(rig), 300)
        words, harness = f"nothing was promised: make room in {rig.state_folder}", None
        if not rig.exit_codes():
            harness = rig.child("harness")
        if harness is not None:
            harness.kill()  # a run met the full disk first, and nothing more was to be written
            words = f"make room in {rig.state_folder}"
        rig.until(lambda: rig.exit_codes() == [10], 300)
        assert words in rig.said(), rig.said()
        assert "[Errno 28]" not in rig.said(), rig.said()
        assert "the fifth time in five minutes: this rig stops" in rig.said()
        assert "Traceback" not in rig.said(), rig.said()
        ballast.unlink()
        rig.serve_until_there()
        # A stage may have missed the room before the ledger did: the rig's fault, twice.
        assert_went_on(rig, "promoted", "crash_infra")
    sys.stdout.write("went on\n")


def fill(ballast: Path) -> None:
    """Leave no room on a filesystem."""
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
