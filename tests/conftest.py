"""What all tests share: hypothesis' profile, the isolation of what they start, a home for rigs.

`make test` runs three tests side by side, since most of them wait. One that is marked
`measures` times real programs and needs the machine for itself: it waits for those beside it,
and the next ones wait for it.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from tests.leased import lease_uids

# Whatever can reach a kill(-1) asks for level users by name, inside a pid namespace of its
# own (tests/namespaced.py); every other test, and every process it starts, gets level none.
os.environ.setdefault("THERMITE_ISOLATION", "none")
lease_uids()

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that every user may pass through, as stages and their rig need it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="thermite-test-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


SLOW_ROOMS = ("docs", "crash", "walk", "spawner", "attack", "supervisor", "harness")
"""Whose tests wait longest: a worker that began one of their files last would end alone."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what measures first, and then the slow rooms; within a file nothing changes places."""

    def place(item: pytest.Item) -> int:
        if item.get_closest_marker("measures") is not None:
            return 0
        return 1 if item.nodeid.split("/")[1] in SLOW_ROOMS else 2

    items.sort(key=place)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    # xdist's workers have their folders side by side in one.
    folder = item.config._tmp_path_factory.getbasetemp().parent  # type: ignore[attr-defined]
    alone = item.get_closest_marker("measures") is not None
    with ExitStack() as held:
        door, room = (held.enter_context((folder / n).open("w")) for n in ("door", "room"))
        fcntl.flock(door, fcntl.LOCK_EX)  # whoever waits for the room lets nobody pass
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        return (yield)
