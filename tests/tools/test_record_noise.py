"""What the recorder writes is what the simulation reads."""

import os
import subprocess
import sys
from pathlib import Path

from thermite.judge.simulate.recorded import read_recording

RECORDER = Path(__file__).parents[2] / "tools" / "record_noise.py"


def record(*argv: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, str(RECORDER), "--what", "a test", *argv], capture_output=True, check=False
    )


def test_a_recording_can_be_read() -> None:
    cpu = min(os.sched_getaffinity(0))
    done = record("--runs", "40", "--cpu", str(cpu), "true")
    assert done.returncode == 0, done.stderr
    found = read_recording(done.stdout)
    assert (found.what, len(found.t_ns)) == ("a test", 40)


def test_a_program_that_fails_is_no_noise() -> None:
    done = record("--runs", "40", "false")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"false ended with 1: ")


def test_a_rest_is_no_part_of_a_run() -> None:
    done = record("--runs", "40", "--rest-ms", "5", "true")
    assert done.returncode == 0, done.stderr
    times = sorted(read_recording(done.stdout).t_ns)
    rested = [t for t in times if t >= 5_000_000]
    assert len(rested) < 40  # with the rests inside, every run would take 5 ms
