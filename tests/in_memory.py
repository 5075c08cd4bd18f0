"""Folders in memory, for what a test simulates: a disk that others use takes most of its time.

What a test means to find out about disks, kills of real processes or other users is not for here.
"""

import os
import shutil
import tempfile
import weakref
from pathlib import Path

from tests.simulated_rig import unlock

MEMORY = Path("/dev/shm")
ROOM_BYTES = 1 << 30
"""What must be free there: some containers have 64 MiB, which a handful of tests fill."""


def memory_folder(owner: object) -> Path | None:
    """Return a new folder that is removed when its owner is, or None where there is no room."""
    if not os.access(MEMORY, os.W_OK | os.X_OK):
        return None
    room = os.statvfs(MEMORY)
    if room.f_bavail * room.f_frsize < ROOM_BYTES:
        return None
    folder = Path(tempfile.mkdtemp(dir=MEMORY, prefix="thermite-test-"))
    weakref.finalize(owner, _remove, folder)
    return folder


def _remove(folder: Path) -> None:
    unlock(folder)
    shutil.rmtree(folder, ignore_errors=True)
