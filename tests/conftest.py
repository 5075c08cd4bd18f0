"""What all tests share: hypothesis' profile, the isolation of what they start, a home for rigs."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Whatever can reach a kill(-1) asks for level users by name, inside a pid namespace of its
# own (tests/namespaced.py); every other test, and every process it starts, gets level none.
os.environ.setdefault("THERMITE_ISOLATION", "none")

settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that every user may pass through, as stages and their rig need it."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="thermite-test-") as name:
        Path(name).chmod(0o711)
        yield Path(name)
