"""Simulated jobs make and remove thousands of small folders: in memory where there is room."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

MEMORY = "/dev/shm"


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    fits = os.access(MEMORY, os.W_OK)
    with TemporaryDirectory(dir=MEMORY if fits else None, prefix="thermite-test-") as folder:
        yield Path(folder)
