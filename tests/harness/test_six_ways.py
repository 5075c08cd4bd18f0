"""Orders come into an inbox by six ways at once: whole ones act, once each, and nothing else."""

import os
import secrets
import shutil
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.harness.live import Live, until
from tests.requirement import shows
from tests.supervisor.eventless import without_events

MEMORY = "/dev/shm"
MANY = 300
PIECES = 8
PAUSE_S = 0.4
"""Less than what settles a file, which is 2 s; all pieces together take longer than that."""


class Sender:
    """Brings orders by each way, and keeps the ids of those that are to act."""

    def __init__(self, live: Live, outside: Path) -> None:
        self.live, self.new, self.outside = live, live.orders.new, outside
        self.ids: list[str] = []

    def raw(self, *, acts: bool = True) -> bytes:
        made = secrets.token_hex(16)
        self.ids += [made] if acts else []
        return self.live.orders.command(id=made)

    def slowly_in_place(self) -> threading.Thread:
        """Begin one in pieces under its name, the first that is looked at, and one never ended."""
        (self.new / "cut.cmd.json").write_bytes(self.raw(acts=False)[:-20])
        raw, file = self.raw(), (self.new / "0.slow.cmd.json").open("wb", buffering=0)
        size = len(raw) // PIECES + 1

        def write() -> None:
            with file:
                for at in range(0, len(raw), size):
                    file.write(raw[at : at + size])
                    threading.Event().wait(PAUSE_S)

        thread = threading.Thread(target=write)
        thread.start()
        return thread

    def from_another_filesystem(self) -> None:
        with TemporaryDirectory(dir=MEMORY) as far:
            (Path(far) / "far.cmd.json").write_bytes(self.raw())
            shutil.move(Path(far) / "far.cmd.json", self.new / "far.cmd.json")

    def as_hard_links(self) -> None:
        """Link one in whose other name goes, and one whose other name stays."""
        for name, acts in (("linked", True), ("shared", False)):
            (self.outside / name).write_bytes(self.raw(acts=acts))
            os.link(self.outside / name, self.new / f"{name}.cmd.json")
        (self.outside / "linked").unlink()

    def as_the_folder(self) -> None:
        """Move a folder of orders in for the inbox's own, which takes all events with it."""
        (self.outside / "new").mkdir()
        for number in range(3):
            (self.outside / "new" / f"{number}.cmd.json").write_bytes(self.raw())
        self.new.rename(self.outside / "old")
        (self.outside / "new").rename(self.new)

    def as_a_folder(self) -> None:
        """Move a folder of orders in, which is no order, and take one out of it there."""
        (self.outside / "all").mkdir()
        (self.outside / "all" / "inner.cmd.json").write_bytes(self.raw(acts=False))
        (self.outside / "all" / "taken.cmd.json").write_bytes(self.raw())
        (self.outside / "all").rename(self.new / "all.cmd.json")
        (self.new / "all.cmd.json" / "taken.cmd.json").rename(self.new / "taken.cmd.json")

    def empty(self) -> None:
        """Leave two files of 0 bytes, one of which is filled."""
        (self.new / "empty.cmd.json").touch()
        (self.new / "filled.cmd.json").touch()
        (self.new / "filled.cmd.json").write_bytes(self.raw())

    def many(self) -> None:
        for _ in range(MANY):
            self.live.orders.drop(self.raw())


@pytest.fixture
def sender(live: Live, tmp_path: Path) -> Sender:
    if Path(MEMORY).stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is one filesystem only")
    (tmp_path / "outside").mkdir()
    return Sender(live, tmp_path / "outside")


@shows("K6")
@pytest.mark.parametrize("events", [True, False], ids=["with events", "by the scan alone"])
def test_by_whatever_way_orders_come_only_whole_ones_act_and_all_of_these_do(
    live: Live, sender: Sender, events: bool
) -> None:
    """Six ways at once, then a folder instead of the inbox's own; 300 for the row's 20,000."""
    live.open()
    with live.supervisor(*([] if events else without_events())):
        live.orders.drop(sender.raw())
        until(lambda: live.types() == ["command_accepted"], "the first one")
        slow = sender.slowly_in_place()
        sender.from_another_filesystem()
        sender.as_hard_links()
        sender.as_a_folder()
        sender.empty()
        sender.many()
        slow.join()
        until(lambda: live.files("new") == ["all.cmd.json"], "an inbox with the folder alone")
        sender.as_the_folder()
        until(lambda: not live.files("new"), "an empty inbox")
    accepted = [event.id for event in live.events("command_accepted")]
    assert sorted(accepted) == sorted(sender.ids)
    assert {event.name: event.code for event in live.events("command_refused")} == {
        "cut.cmd.json": "malformed_envelope",
        "empty.cmd.json": "malformed_envelope",
        "shared.cmd.json": "not_a_plain_file",
    }
    assert len(live.types()) == len(accepted) + 3
    assert live.faults == []
