"""The supervisor as a process: what keeps it from its work is said, and is no traceback."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from thermite.schema.child_exit import REFUSED

ROOT = Path(__file__).parents[2]
NOT_ABOVE_MODES = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]
"""Without what lets root pass over a folder's mode."""
CLOSED_TO_ME = NOT_ABOVE_MODES if os.getuid() == 0 else []


@pytest.fixture
def rig(tmp_path: Path) -> Path:
    for name in ("tmp", "new", "work", "done", "refused"):
        (tmp_path / "inbox" / name).mkdir(parents=True)
    return tmp_path


def started(rig: Path, prefix: Sequence[str] = ()) -> tuple[int, str]:
    """Start a supervisor on a rig's folder, as a spawner does; return its exit code and words."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        supervisor = launched(rig, theirs.fileno(), prefix)
        _, said = supervisor.communicate(timeout=60)
    assert "Traceback" not in said
    return supervisor.returncode, said


def launched(rig: Path, peer: int, prefix: Sequence[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", "supervisor"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "THERMITE_STATE": str(rig), "THERMITE_FD_PEER": str(peer)},
        pass_fds=(peer,),
        stderr=subprocess.PIPE,
        text=True,
    )


def test_an_inbox_that_may_not_be_entered_is_named(rig: Path) -> None:
    """It ended with a traceback, five times, and the rig stopped; no start changes a mode."""
    (rig / "inbox").chmod(0)
    code, said = started(rig, CLOSED_TO_ME)
    (rig / "inbox").chmod(0o700)
    assert code == REFUSED
    assert f"supervisor: {rig / 'inbox'}" in said
    assert f"Permission denied: let user {os.getuid()} use it" in said


def test_settings_that_cannot_be_read_are_no_reason_to_start_again(rig: Path) -> None:
    (rig / "rig.toml").write_text('name = "a"\ncolour = "b"\n')
    code, said = started(rig)
    assert code == REFUSED
    assert "colour" in said


def test_a_folder_that_is_closed_at_work_may_be_open_at_the_next_start(rig: Path) -> None:
    """Whoever sets the modes of an inbox anew must not end the rig between two of them."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        supervisor = launched(rig, theirs.fileno(), CLOSED_TO_ME)
        ours.settimeout(60)
        ours.recv(1 << 16)  # its hello
        (rig / "inbox/new/a.cmd.json").write_bytes(b"{")
        (rig / "inbox/new").chmod(0o400)  # it may be listed, and nothing in it looked at
        _, said = supervisor.communicate(timeout=60)
        (rig / "inbox/new").chmod(0o700)
    assert supervisor.returncode == 1
    assert f"Permission denied: let user {os.getuid()} use it" in said
