"""The real supervisor and the real door: from a dropped file to a receipt."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest

from tests.harness.goods import Goods
from tests.harness.live import Live, until
from tests.requirement import shows
from thermite.command.signing_key import SigningKey


def decided(live: Live) -> int:
    """How many orders the file has an answer to; the state is ahead of it while a group commits."""
    return sum(one in {"command_accepted", "command_refused"} for one in live.types())


def has_decided(live: Live, share: int) -> bool:
    return decided(live) >= share


def test_a_dropped_assignment_becomes_one(staged: Live, tmp_path: Path) -> None:
    goods = Goods(tmp_path / "goods", staged.orders)
    staged.open()
    with staged.supervisor():
        goods.pack()
        staged.orders.drop(goods.command())
        until(lambda: staged.assigned, "the assignment")
        until(lambda: not staged.files("new"), "an empty inbox")
    assert staged.types()[-2:] == ["assignment_created", "mcp_servers"]


@shows("K6")
def test_a_burst_while_nobody_watched_is_decided_whole_and_once(live: Live) -> None:
    """2,000 files, copies among them, arrive while the supervisor is stopped by a signal."""
    live.open()
    with live.supervisor() as process:
        live.orders.drop(live.orders.command())
        until(lambda: decided(live) == 1, "the first one")
        os.kill(process.pid, signal.SIGSTOP)
        commands = [live.orders.command() for _ in range(200)]
        for raw in commands:
            live.orders.drop(raw)
        for number in range(1800):
            live.orders.drop(commands[number % len(commands)])
        third = len(commands[0]) // 3
        late = live.orders.command()
        with (live.orders.new / "slow.cmd.json").open("wb", buffering=0) as file:
            file.write(late[:third])
            os.kill(process.pid, signal.SIGCONT)
            time.sleep(1.0)
            file.write(late[third:])
        until(lambda: not live.files("new"), "an empty inbox")
    assert live.types().count("command_accepted") == 202
    assert live.book.state.refused == 0
    assert len(list(live.folder.outbox.glob("*.accepted.receipt.json"))) == 202


def test_a_folder_made_anew_while_files_arrive_loses_none(live: Live) -> None:
    live.open()
    with live.supervisor():
        live.orders.drop(live.orders.command())
        until(lambda: decided(live) == 1 and not live.files("new"), "the first one")
        aside = live.state / "inbox" / "old"
        live.orders.new.rename(aside)
        live.orders.new.mkdir()
        for _ in range(20):
            live.orders.drop(live.orders.command())
        until(lambda: decided(live) == 21, "all of them")
        until(lambda: not live.files("new"), "an empty inbox")
    assert live.types() == ["command_accepted"] * 21
    assert len(list(live.folder.outbox.glob("*.accepted.receipt.json"))) == 21
    assert list(aside.iterdir()) == []


def test_a_killed_supervisor_with_open_offers_loses_none(live: Live) -> None:
    live.open()
    for _ in range(60):
        live.orders.drop(live.orders.command())
    for share in (5, 20, 60):
        with live.supervisor():
            until(partial(has_decided, live, share), f"{share} of them")
    until(lambda: not live.files("new"), "an empty inbox")
    assert live.types().count("command_accepted") == 60


def test_a_harness_started_again_goes_on(live: Live) -> None:
    """Its end of the socket is new: the supervisor ends, and a new one finds what is left."""
    for _ in range(30):
        live.orders.drop(live.orders.command())
    live.open()
    with live.supervisor():
        until(lambda: decided(live) >= 3, "some of them")
    live.reopen()
    live.open()
    with live.supervisor():
        until(lambda: decided(live) == 30, "all of them")
    assert live.types().count("command_accepted") == 30


@pytest.mark.parametrize("kind", ["link", "fifo", "hard link", "truncated", "stranger", "huge"])
def test_what_is_no_order_is_moved_aside_with_a_reason(live: Live, kind: str) -> None:
    live.open()
    path = live.orders.new / "odd.cmd.json"
    raw = live.orders.command()
    elsewhere = live.state / "elsewhere"
    elsewhere.write_bytes(raw)
    if kind == "link":
        path.symlink_to(elsewhere)
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "hard link":
        os.link(elsewhere, path)
    elif kind == "truncated":
        path.write_bytes(raw[:-30])
    elif kind == "stranger":
        path.write_bytes(live.orders.sealed(live.orders.payload(), SigningKey.generate()))
    else:
        path.write_bytes(b" " * (1 << 20) + raw)
    with live.supervisor():
        until(live.reasons, "a reason")
    assert not os.path.lexists(path)
    assert elsewhere.read_bytes() == raw
    assert [name for name in live.files("refused") if name.endswith("odd.cmd.json")]
    assert live.types() == ["command_refused"]


@shows("K-183")
def test_a_source_is_fetched_when_nothing_was_dropped(staged: Live, tmp_path: Path) -> None:
    goods = Goods(tmp_path / "goods", staged.orders)
    for what in ("kit", "project"):
        repo = (tmp_path / "goods" / what).as_uri()
        assert goods.kit
        goods.add(what, f"{what}.bundle", "a" * 64, source={"git": repo})
    (staged.state / "rig.toml").write_text("allow_file_sources = true\n")
    staged.open()
    with staged.supervisor():
        staged.orders.drop(goods.command())
        until(lambda: staged.assigned, "the assignment")
    assert staged.types()[-1] == "mcp_servers"
