"""Where rigs of these tests lie."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that every user may pass through."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="thermite-test-") as name:
        Path(name).chmod(0o711)
        yield Path(name)
