"""The harness as a process: what keeps it from its work is said, and whether to start it again.

The spawner knows only the exit code: 78 for what somebody has to mend, and no start after it.
"""

import json
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.test_by_hand import Stopped, cut_after_a_receipt
from tests.walk.test_broken_rigs import PROBED
from thermite.harness.keys import coin_key
from thermite.schema.child_exit import REFUSED
from thermite.spawner import family

ROOT = Path(__file__).parents[2]


@pytest.fixture
def rig(tmp_path: Path) -> Stopped:
    made = Stopped(tmp_path / "rig")
    coin_key(made.folder.keys, fresh=True)
    return made


def started(state: Path) -> tuple[int, str]:
    """Start a harness on a rig's folder, as a spawner does; return its exit code and its words."""
    spawner, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with spawner, its_end:
        fd = its_end.fileno()
        harness = subprocess.Popen(
            [sys.executable, "-m", "thermite.harness"],
            env={"PYTHONPATH": str(ROOT), "THERMITE_STATE": str(state)}
            | dict.fromkeys(("THERMITE_FD_SPAWNER", "THERMITE_FD_PEER"), str(fd)),
            pass_fds=(fd,),
            stderr=subprocess.PIPE,
            text=True,
        )
        asked = json.loads(spawner.recv(1 << 16))
        spawner.send(json.dumps({"id": asked["id"], **PROBED}).encode())
        _, said = harness.communicate(timeout=60)
    assert "Traceback" not in said
    return harness.returncode, said


def damage(rig: Stopped) -> None:
    with rig.folder.ledger.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 64)


def lose_the_key(rig: Stopped) -> None:
    (rig.folder.keys / "rig.key").unlink()


def misspell_a_setting(rig: Stopped) -> None:
    (rig.state / "rig.toml").write_text('name = "a"\ncolour = "b"\n')


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        pytest.param(cut_after_a_receipt, "ledger accept-loss {}", id="an old backup"),
        pytest.param(damage, "is damaged", id="damage"),
        pytest.param(lose_the_key, "rig.key is gone", id="a lost key"),
        pytest.param(misspell_a_setting, "colour", id="settings"),
    ],
)
def test_what_somebody_has_to_mend_is_no_reason_to_start_again(
    rig: Stopped, harm: Callable[[Stopped], None], says: str
) -> None:
    """It was started five times in 20 s, and refused each time in the same words."""
    harm(rig)
    code, said = started(rig.state)
    assert (code, said.count("harness: ")) == (REFUSED, 1)
    assert says.format(rig.state) in said


def test_a_writer_that_is_in_the_way_may_have_ended_at_the_next_start(rig: Stopped) -> None:
    with rig.open():
        code, said = started(rig.state)
    assert code == 1
    assert "end that one first" in said


def test_the_spawner_knows_the_code() -> None:
    assert family.REFUSED == REFUSED
