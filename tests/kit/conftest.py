"""Fixtures of the kit room."""

from pathlib import Path

import pytest

from tests.kit.git_author import plain_git


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Return an empty repository."""
    path = tmp_path / "repo"
    path.mkdir()
    plain_git(path, "init", "-q")
    return path
