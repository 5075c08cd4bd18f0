"""The watch: a hint for every way in which a file arrives, and again after a new folder."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from supervisor.inbox import Inbox
from supervisor.watch import Watch

PATIENCE_S = 30.0
QUIET_S = 0.5


class Hinted:
    """A watch, and whether it has said something."""

    def __init__(self, inbox: Path) -> None:
        self.inbox = Inbox(inbox)
        self.event = threading.Event()
        self.watch = Watch(self.inbox.new, self.event.set)
        self.follow()

    def follow(self) -> None:
        self.watch.follow(self.inbox.place())

    def said(self) -> bool:
        found = self.event.wait(PATIENCE_S)
        threading.Event().wait(QUIET_S)  # the rest of the burst
        self.event.clear()
        return found

    def is_quiet(self) -> bool:
        return not self.event.wait(QUIET_S)


@pytest.fixture
def hinted(tmp_path: Path) -> Iterator[Hinted]:
    for name in ("tmp", "new"):
        (tmp_path / "inbox" / name).mkdir(parents=True)
    made = Hinted(tmp_path / "inbox")
    yield made
    made.watch.close()


def arrive(inbox: Path, name: str = "a.cmd.json") -> None:
    (inbox / "tmp" / name).write_text("x")
    (inbox / "tmp" / name).rename(inbox / "new" / name)


def test_a_rename_into_the_folder_is_a_hint(hinted: Hinted, tmp_path: Path) -> None:
    arrive(tmp_path / "inbox")
    assert hinted.said()


def test_a_write_in_place_is_a_hint(hinted: Hinted, tmp_path: Path) -> None:
    (tmp_path / "inbox" / "new" / "b.cmd.json").write_text("x")
    assert hinted.said()


def test_reading_is_no_hint(hinted: Hinted, tmp_path: Path) -> None:
    """Else every scan would cause the next one."""
    arrive(tmp_path / "inbox")
    assert hinted.said()
    (tmp_path / "inbox" / "new" / "a.cmd.json").read_text()
    assert hinted.inbox.scan()
    assert hinted.is_quiet()


def test_a_folder_made_anew_is_followed(hinted: Hinted, tmp_path: Path) -> None:
    new = tmp_path / "inbox" / "new"
    new.rename(tmp_path / "old")
    new.mkdir()
    arrive(tmp_path / "inbox")
    assert hinted.is_quiet()  # what makes the scan the truth
    hinted.follow()
    arrive(tmp_path / "inbox", "b.cmd.json")
    assert hinted.said()


def test_a_folder_that_is_gone_is_waited_for(hinted: Hinted, tmp_path: Path) -> None:
    new = tmp_path / "inbox" / "new"
    new.rmdir()
    hinted.follow()
    assert hinted.inbox.scan() == []
    new.mkdir()
    hinted.follow()
    arrive(tmp_path / "inbox")
    assert hinted.said()


def test_what_watchdog_says_of_its_own_end_is_not_in_the_rigs_log(tmp_path: Path) -> None:
    code = """
import sys
import supervisor.watch
from watchdog.observers.api import EventQueue, ObservedWatch
from watchdog.observers.inotify import InotifyEmitter
InotifyEmitter(EventQueue(), ObservedWatch(sys.argv[1], recursive=False)).queue_events(1)
print("went on")
"""
    argv = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("went on\n", "")
