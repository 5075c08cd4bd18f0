"""User ids for the rigs of this test process alone, so that runs side by side can't meet.

Rigs on one machine share their leases by the folder that holds the locks; rigs of tests have
folders of their own, and would lease the same numbers: one would count, and sweep away, what
another's stages left. So each process takes a range of its own first.
"""

import fcntl
import os
from pathlib import Path
from typing import IO, Final

FOLDER: Final = Path("/var/tmp/thermite-test-uids")
LOW: Final = 40_000
"""The first of them: above people's accounts, below the default range of a rig (our figure)."""
EACH: Final = 200
MOST: Final = 40

_held: list[IO[str]] = []


def lease_uids() -> None:
    """Set THERMITE_UID_RANGE for what this process starts; it is held until the process ends."""
    if os.geteuid() != 0 or _held:
        return
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    for number in range(MOST):
        file = (FOLDER / str(number)).open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        _held.append(file)
        low = LOW + number * EACH
        os.environ["THERMITE_UID_RANGE"] = f"{low}-{low + EACH - 1}"
        return
    raise RuntimeError(f"{MOST} test processes run already: {FOLDER} has no free number")


def few_uids(count: int) -> tuple[int, int]:
    """Return first and last of so few of this process's numbers that rigs get in each other's way.

    They are none that its other rigs have, which take the lowest. A plain user leases none.
    """
    low = int(os.environ.get("THERMITE_UID_RANGE", f"{LOW}-").partition("-")[0]) + EACH // 2
    return low, low + count - 1
