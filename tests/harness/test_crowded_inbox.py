"""What is opened in an inbox, and an inbox that fills, stops and changes under a slow writer."""

import ctypes
import os
import signal
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.harness.live import Live, until

IN_OPEN = 0x20
EVENT = struct.Struct("iIII")  # inotify(7): watch, mask, cookie, length of the name behind it
ORDERS = 200


@contextmanager
def opened_in(folder: Path) -> Iterator[set[str]]:
    """Collect the names of what anybody opens in a folder, as the kernel tells it."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert libc.inotify_add_watch(watch, os.fsencode(folder), IN_OPEN) >= 0
    names: set[str] = set()
    try:
        yield names
        raw = os.read(watch, 1 << 20)
        while raw:
            *_, length = EVENT.unpack_from(raw)
            name = raw[EVENT.size : EVENT.size + length].rstrip(b"\0")
            names |= {os.fsdecode(name)} if name else set()  # without one: the folder itself
            raw = raw[EVENT.size + length :]
    finally:
        os.close(watch)


def test_no_bundle_is_opened_for_an_order_to_another_rig(live: Live) -> None:
    source = {"git": "https://example.org/kit.git"}
    kit = {"kind": "kit_bundle", "path": "kit.bundle", "repo": "kit", "commit": "c" * 40}
    body = {
        "contract": {},
        "imports": [kit | {"source": source}],
        "mcp_servers": [],
        "providers": {"mcp": []},
    }
    live.orders.drop(b"# v2 git bundle\n", "kit.bundle")
    live.open()
    with opened_in(live.orders.new) as names, live.supervisor():
        live.orders.drop(live.orders.command("assign_campaign", body, rig="f" * 32), "a.cmd.json")
        until(live.reasons, "a reason")
    assert names == {"a.cmd.json"}
    assert [event.code for event in live.events("command_refused")] == ["wrong_rig"]
    assert live.files("new") == ["kit.bundle"]


def test_an_inbox_that_fills_while_nobody_looks_and_is_made_anew_is_decided_whole(
    live: Live,
) -> None:
    """One order is written in place, in pieces, meanwhile; none is refused or decided twice."""
    slow, new = live.orders.command(), live.orders.new
    third = len(slow) // 3
    live.open()
    with live.supervisor() as supervisor, (new / "slow.cmd.json").open("wb", buffering=0) as file:
        file.write(slow[:third])
        os.kill(supervisor.pid, signal.SIGSTOP)
        once = live.orders.command()
        for number in range(ORDERS):
            live.orders.drop(once if number % 10 else live.orders.command())
        file.write(slow[third : 2 * third])
        new.rename(live.state / "aside")
        new.mkdir()
        for path in (live.state / "aside").iterdir():
            path.rename(new / path.name)
        os.kill(supervisor.pid, signal.SIGCONT)
        file.write(slow[2 * third :])
        until(lambda: not live.files("new"), "an empty inbox")
    assert live.types() == ["command_accepted"] * (ORDERS // 10 + 2)
    accepted = [event.sha256 for event in live.events("command_accepted")]
    assert len(set(accepted)) == len(accepted)
    assert len(live.files("done")) == ORDERS + 1
    assert live.files("refused") == live.files("work") == []
    assert len(list(live.folder.outbox.glob("*.accepted.receipt.json"))) == len(accepted)
    assert live.faults == []
