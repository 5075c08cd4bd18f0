"""Keeps a rig for a test: serves it at each line on standard input, and says how it ended.

It is the served rig's parent, so that a test can kill the spawner, find it gone and have it
served again in the same pid namespace. The end of standard input is the end of everything.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

PATIENCE_S = 60.0


def keep(log: Path, endings: Path, argv: list[str]) -> None:
    """Serve as long as somebody asks.

    Args:
        log: file that takes what the rig says; endings: file that gets each exit code, one a
            line; argv: what serves the rig.
    """
    served: subprocess.Popen[bytes] | None = None
    for _ in sys.stdin.buffer:
        if served is None or served.poll() is not None:
            with log.open("ab") as said:
                served = subprocess.Popen(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    start_new_session=True,
                )
            threading.Thread(target=_bury, args=(served, endings), daemon=True).start()
    if served is not None and served.poll() is None:
        os.kill(served.pid, signal.SIGTERM)
        served.wait(PATIENCE_S)


def _bury(served: "subprocess.Popen[bytes]", endings: Path) -> None:
    code = served.wait()
    with endings.open("a", encoding="ascii") as file:
        file.write(f"{code}\n")


if __name__ == "__main__":
    if os.getpid() != 1 and os.getppid() == 1 and os.getuid() == 0:
        # In a namespace of our own: the uids that are leased there are no other rig's affair.
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    keep(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
