"""Orders that can't be read or moved: each is decided once, and holds up no other."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.harness.live import Live, until
from tests.requirement import shows

POWERLESS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
"""Root without the right to read what its mode forbids, as the supervisor's user is."""


@pytest.fixture
def fixed(live: Live) -> Iterator[Path]:
    """An order that nobody can move, not even its owner."""
    path = live.orders.drop(live.orders.command(), "fixed.cmd.json")
    chattr = shutil.which("chattr")
    if chattr is None or subprocess.run([chattr, "+i", path], check=False).returncode != 0:
        pytest.skip("no file can be made immutable here: this needs root and a filesystem with it")
    yield path
    subprocess.run([chattr, "-i", path], check=True)


@shows("K12")
def test_an_order_that_cannot_be_read_is_refused_once(live: Live) -> None:
    live.orders.drop(live.orders.command(), "closed.cmd.json").chmod(0)
    live.open()
    with live.supervisor(*(POWERLESS if os.getuid() == 0 else [])):
        until(live.reasons, "a reason")
        live.orders.drop(live.orders.command(), "open.cmd.json")
        until(lambda: not live.files("new"), "an empty inbox")
    assert live.types() == ["command_refused", "command_accepted"]
    assert live.events("command_refused")[0].code == "unreadable"


@shows("K12")
def test_an_order_that_cannot_be_moved_is_decided_once_also_after_a_restart(
    live: Live, fixed: Path
) -> None:
    live.open()
    for count in (2, 3):
        with live.supervisor():
            live.orders.drop(live.orders.command(), "other.cmd.json")
            until(partial(has_events, live, count), "both decided")
            until(lambda: live.files("new") == [fixed.name], "the other one moved")
        live.reopen()
        live.open()
    assert live.types() == ["command_accepted"] * 3
    assert len(list(live.folder.outbox.glob("*.accepted.receipt.json"))) == 3
    assert live.faults == []


def has_events(live: Live, count: int) -> bool:
    return len(live.types()) == count
