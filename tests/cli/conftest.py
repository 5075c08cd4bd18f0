"""The operator's desk, for the tests of the commands that run there."""

from pathlib import Path

import pytest

from tests.cli.operator_desk import Desk, known_desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return known_desk(tmp_path)
