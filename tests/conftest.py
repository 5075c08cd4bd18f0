"""What all tests share: hypothesis' profile, the isolation of what they start, a home for rigs.

`make test` first runs the tests that are marked `measures`, one after the other: they time
real programs and need the machine for themselves. Most of the others wait, so three of them run
side by side.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.leased import lease_uids
from tests.open_folder import open_folder

# Whatever can reach a kill(-1) asks for level users by name, inside a pid namespace of its
# own (tests/namespaced.py); every other test, and every process it starts, gets level none.
os.environ.setdefault("THERMITE_ISOLATION", "none")
# A rig's first campaign after a reboot begins with minutes of blocks; one test asks for them.
os.environ.setdefault("THERMITE_SELFTEST", "short")
lease_uids()

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that every user may pass through, as stages and their rig need it."""
    with open_folder() as folder:
        yield folder


SLOW_ROOMS = ("docs", "crash", "walk", "spawner", "attack", "supervisor", "harness")
"""Whose tests wait longest: a worker that began one of their files last would end alone."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the slow rooms first; within a file nothing changes places."""
    items.sort(key=lambda item: item.nodeid.split("/")[1] not in SLOW_ROOMS)
