"""A door that is killed again and again: every order is decided once, every receipt is whole."""

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import cast

from tests.harness.live import ROOT, Live, NoStages, until
from thermite.audit.verify import audit
from thermite.command.signing_key import SigningKey
from thermite.rig.stages import Stages

SEED = bytes(range(32))
KILLS = int(os.environ.get("THERMITE_KILLS", "12"))
"""A long run sets it to 200."""
ORDERS = 12 * KILLS + 6


@contextmanager
def door_process(live: Live) -> Iterator["subprocess.Popen[bytes]"]:
    """A door and the real supervisor on a socket of their own; both are killed at the end."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    live.theirs.close()
    live.theirs = theirs
    script = str(ROOT / "tests" / "harness" / "door_process.py")
    process = subprocess.Popen(
        [sys.executable, script, str(live.state), str(ours.fileno()), SEED.hex()],
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        pass_fds=[ours.fileno()],
    )
    try:
        with live.supervisor():
            yield process
    finally:
        process.kill()
        process.wait()
        ours.close()


def test_a_storm_of_kills_decides_each_order_once(tmp_path: Path) -> None:
    live = Live(tmp_path / "rig", cast("Stages", NoStages()), rig_key=SigningKey.from_raw(SEED))
    live.door.close()
    live.book.close()
    raws = [live.orders.command() for _ in range(ORDERS)]
    for raw in raws:
        live.orders.drop(raw)
    draw = random.Random(20260131)
    for number in range(1, KILLS + 1):
        left = ORDERS - number * ORDERS // (KILLS + 1)
        with door_process(live) as process:
            until(partial(has_at_most, live, left), f"{left} files left")
            time.sleep(draw.uniform(0, 0.03))  # anywhere between an append and its receipt
            process.kill()
    with door_process(live):
        until(lambda: not live.files("new"), "an empty inbox")
        until(lambda: len(receipts(live)) == ORDERS, "the last receipts")
    accepted = [event.sha256 for event in live.events("command_accepted")]
    assert len(accepted) == len(set(accepted)) == ORDERS
    assert live.events("command_refused") == []
    assert live.files("work") == []
    for name in receipts(live):
        assert live.receipt(name).outcome == "accepted"
    found = audit(live.folder.ledger, against=[live.folder.outbox]).findings
    assert [one.code for one in found if one.severity == "finding"] == []
    live.theirs.close()


def has_at_most(live: Live, files: int) -> bool:
    return len(live.files("new")) <= files


def receipts(live: Live) -> list[str]:
    return [path.name for path in live.folder.outbox.glob("*.accepted.receipt.json")]
