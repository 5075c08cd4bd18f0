"""A rig that serves, seen from outside: processes by parent and argv, the ledger as it grows."""

import contextlib
import os
import signal
from abc import ABC, abstractmethod
from pathlib import Path

import psutil

from thermite.campaign.state import Assignment, State
from thermite.cli.follow import Follower
from thermite.schema.event import Event

ROOT = Path(__file__).resolve().parents[1]
SPAWNER = str(ROOT / "thermite" / "spawner")
MODULES = {"supervisor": "supervisor", "harness": "thermite.harness"}


class Serving(ABC):
    """One rig whose spawner is the child of a process that is known."""

    def __init__(self, state_folder: Path) -> None:
        self.state_folder = state_folder
        self.follower = Follower(state_folder / "ledger.db")
        self.events: list[Event] = []

    @abstractmethod
    def keeping(self) -> psutil.Process | None:
        """The parent of the process that serves."""

    def spawner(self) -> psutil.Process | None:
        """The process that serves, once it has become the spawner."""
        found = [one for one in children_of(self.keeping()) if argv_of(one)[-2:-1] == [SPAWNER]]
        return found[0] if found else None

    def child(self, name: str) -> psutil.Process | None:
        """The spawner's child of that name, found by its parent and its argv."""
        spawner = self.spawner()
        if spawner is None:
            return None
        found = [one for one in children_of(spawner) if argv_of(one)[-1:] == [MODULES[name]]]
        return found[0] if found else None

    def everything(self) -> list[psutil.Process]:
        """The spawner and all below it."""
        spawner = self.spawner()
        return [] if spawner is None else [spawner, *children_of(spawner, recursive=True)]

    def kill(self, name: str) -> bool:
        """Kill spawner, supervisor or harness by its number; False: there is none now."""
        one = self.spawner() if name == "spawner" else self.child(name)
        if one is None:
            return False
        try:
            os.kill(one.pid, signal.SIGKILL)
        except ProcessLookupError:
            return False
        return True

    @property
    def state(self) -> State:
        """What the ledger means now."""
        with contextlib.suppress(FileNotFoundError):
            self.events += [row.event for row in self.follower.new()]
        return self.follower.state

    @property
    def assignment(self) -> Assignment | None:
        """The newest campaign."""
        return next(reversed(self.state.assignments.values()), None)

    @property
    def size(self) -> int:
        """How many events the ledger has."""
        return self.state.seq


def ended(rig: Serving) -> bool:
    """Return whether the newest campaign has ended."""
    return rig.assignment is not None and rig.assignment.status == "ended"


def children_of(one: psutil.Process | None, *, recursive: bool = False) -> list[psutil.Process]:
    """Return the processes below one, none when it has gone."""
    if one is None:
        return []
    try:
        return one.children(recursive=recursive)
    except psutil.NoSuchProcess:
        return []


def argv_of(one: psutil.Process) -> list[str]:
    """Return a process's command line, nothing when it has ended."""
    try:
        return one.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []
