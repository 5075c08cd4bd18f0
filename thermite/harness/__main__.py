"""The process: `python -m thermite.harness`, started by the spawner.

The environment says where the rig is (`THERMITE_STATE`) and which descriptors lead to the
spawner and to the supervisor. It opens the ledger or makes it, replays it, tells what keeps
stages apart here, goes on with what was running, and decides on commands until it is told
to end. Exit codes: 0 told to end, 1 something is in the way that may pass (a full disk, another
writer), 70 a fault of ours: it is started again. 78 what it says must be mended first (a ledger
that ends too early or is damaged, a lost key, rig.toml): it is not.
"""

import os
import signal
import socket
import sys
import threading
from pathlib import Path

from thermite.errors import ThermiteError, UsageError
from thermite.harness.ending import FAILED, Ending, cut_short, not_begun
from thermite.harness.rig import Rig
from thermite.rig.stage import connect
from thermite.rig.stages import Stages


def main() -> int:
    """Run the process and return its exit code."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    state = None
    try:
        state, spawner, peer = _handed_over()
        rig = Rig.open(state, spawner)
    except (ThermiteError, OSError) as error:
        return _said(not_begun(error, state))
    faults: list[BaseException] = []

    def fatal(error: BaseException) -> None:
        faults.append(error)
        stop.set()

    rig.start(peer, fatal)
    sys.stderr.write(f"harness: rig {rig.key.public.id} serves; {rig.key.public.fingerprint}\n")
    sys.stderr.flush()
    stop.wait()
    try:
        rig.close()
    except (ThermiteError, OSError) as error:  # a disk that has no room for the last checkpoint
        faults.append(error)
    return _said(cut_short(faults[0], state)) if faults else 0


def _said(ending: Ending) -> int:
    sys.stderr.write(f"harness: {ending.said}\n")
    return ending.code


def _handed_over() -> tuple[Path, Stages, socket.socket]:
    """Return the rig's folder and both sockets, as the spawner gave them.

    Raises:
        UsageError: started by hand.
    """
    try:
        state = Path(os.environ["THERMITE_STATE"])
        spawner = int(os.environ["THERMITE_FD_SPAWNER"])
        peer = socket.socket(fileno=int(os.environ["THERMITE_FD_PEER"]))
    except (KeyError, ValueError, OSError) as error:
        raise UsageError(
            f"{error}: the spawner starts this process; run thermite rig serve"
        ) from error
    return state, connect(spawner, _end_with_the_spawner), peer


def _end_with_the_spawner() -> None:
    """End at once, before a stage that was cut off is taken for a failure of the rig.

    The kernel ends this process too, but only after the spawner's sockets are closed: in
    between, a verdict that blames the rig could become durable.
    """
    sys.stderr.write("harness: the spawner is gone\n")
    os._exit(FAILED)


if __name__ == "__main__":
    # Threads of a stopped campaign may still wait for a stage; the spawner ends that.
    sys.stderr.flush()
    os._exit(main())
