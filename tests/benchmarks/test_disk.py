"""The library that delays each sync does that, and nothing else."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import disk

SYNCED = """
import errno, os, time
start = time.perf_counter()
memory = os.memfd_create("synced")  # a real disk may take as long as others make it
for sync in (os.fsync, os.fdatasync):
    sync(memory)
print(time.perf_counter() - start >= 2 * int(os.environ["SYNC_DELAY_MS"]) / 1000)
try:
    os.fdatasync(os.pipe()[0])
except OSError as error:
    print(errno.errorcode[error.errno])
"""


def test_each_sync_takes_so_much_longer_and_fails_as_it_did(tmp_path: Path) -> None:
    if disk.missing() is not None:
        pytest.skip(str(disk.missing()))
    environment = os.environ | {"LD_PRELOAD": str(disk.build(tmp_path)), "SYNC_DELAY_MS": "30"}
    done = subprocess.run(
        [sys.executable, "-c", SYNCED],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "EINVAL"]
