"""Every way in which a command file comes to lie in an inbox: whole ones act, no other does."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.requirement import shows
from tests.supervisor.eventless import without_events
from tests.supervisor.harness_end import Harness
from thermite.schema.offer import Hello, Offer, Refuse, encode, name_bytes


@shows("K6")
def test_a_file_from_another_filesystem_is_offered_whole(running: Harness) -> None:
    if Path("/dev/shm").stat().st_dev == running.orders.new.stat().st_dev:
        pytest.skip("there is one filesystem only")
    raw = running.orders.command()
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        (Path(folder) / "moved.cmd.json").write_bytes(raw)
        shutil.move(Path(folder) / "moved.cmd.json", running.orders.new / "moved.cmd.json")
    message, body = running.offer()
    assert isinstance(message, Offer)
    assert body == raw


@shows("K6")
def test_a_folder_that_is_moved_in_is_left_alone_and_its_file_found_once_it_is_moved_out(
    running: Harness, tmp_path: Path
) -> None:
    orders = running.orders
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "inner.cmd.json").write_bytes(orders.command())
    (tmp_path / "all").rename(orders.new / "all")
    orders.drop(orders.command(), "beside.cmd.json")
    message, _ = running.offer()
    assert name_bytes(message.name) == b"beside.cmd.json"
    running.decide(message)
    (orders.new / "all" / "inner.cmd.json").rename(orders.new / "inner.cmd.json")
    assert name_bytes(running.offer()[0].name) == b"inner.cmd.json"


@shows("K6")
def test_an_empty_file_is_given_time_and_then_refused_or_read_when_it_fills(
    running: Harness,
) -> None:
    orders = running.orders
    (orders.new / "empty.cmd.json").touch()
    (orders.new / "late.cmd.json").touch()
    raw = orders.command()
    (orders.new / "late.cmd.json").write_bytes(raw)
    found: dict[bytes, object] = {}
    while len(found) < 2:  # what nobody has decided on yet may be offered once more meanwhile
        message, body = running.offer()
        found[name_bytes(message.name)] = (type(message), body)
    assert found == {
        b"late.cmd.json": (Offer, raw),
        b"empty.cmd.json": (Refuse, None),
    }


@shows("K6")
def test_a_hard_link_that_comes_in_is_offered_once_the_file_has_that_name_alone(
    running: Harness, tmp_path: Path
) -> None:
    """As a mail-folder writer does; while there are two names, the other one may write on."""
    orders = running.orders
    (tmp_path / "outside").write_bytes(raw := orders.command())
    os.link(tmp_path / "outside", orders.new / "linked.cmd.json")
    assert running.silent(1)
    (tmp_path / "outside").unlink()
    message, body = running.offer()
    assert isinstance(message, Offer)
    assert body == raw


@shows("K7")
def test_without_events_everything_is_found_all_the_same_and_that_is_said_once(
    harness: Harness,
) -> None:
    harness.start(*without_events())
    harness.is_up = True
    assert harness.hear()[0] == Hello(n=0)
    harness.sock.send(encode(Hello(n=1)))
    orders = harness.orders
    for name in ("first.cmd.json", "second.cmd.json"):
        orders.drop(orders.command(), name)
        message, _ = harness.offer()
        assert name_bytes(message.name) == name.encode()
        harness.decide(message)
    orders.new.rmdir()
    orders.new.mkdir()
    orders.drop(orders.command(), "anew.cmd.json")
    assert name_bytes(harness.offer()[0].name) == b"anew.cmd.json"
    process, harness.process = harness.process, None
    assert process is not None
    process.kill()
    _, said = process.communicate()
    assert said.decode().count("no events for") == 1
