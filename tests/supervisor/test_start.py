"""The supervisor as a process: what keeps it from its work is said, and is no traceback."""

import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
NOT_ABOVE_MODES = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
"""Without what lets root pass over a folder's mode."""


def test_an_inbox_that_may_not_be_entered_is_named(tmp_path: Path) -> None:
    """It ended with a traceback, five times, and the rig stopped."""
    for name in ("tmp", "new", "work", "done", "refused"):
        (tmp_path / "inbox" / name).mkdir(parents=True)
    (tmp_path / "inbox").chmod(0)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        ran = subprocess.run(
            [*(NOT_ABOVE_MODES if os.getuid() == 0 else []), sys.executable, "-m", "supervisor"],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], **told(tmp_path, theirs)},
            pass_fds=(theirs.fileno(),),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    (tmp_path / "inbox").chmod(0o700)
    assert ran.returncode == 1
    assert f"supervisor: {tmp_path / 'inbox'}" in ran.stderr
    assert "Permission denied" in ran.stderr
    assert "Traceback" not in ran.stderr


def told(state: Path, line: socket.socket) -> dict[str, str]:
    return {"THERMITE_STATE": str(state), "THERMITE_FD_PEER": str(line.fileno())}
