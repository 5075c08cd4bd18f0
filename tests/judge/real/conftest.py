"""One rig at level none for the tests of a file."""

from collections.abc import Iterator

import pytest

from tests.judge.real.workshop import Workshop, opened


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with opened(tmp_path_factory.mktemp("workshop")) as made:
        yield made


@pytest.fixture(autouse=True)
def fresh(workshop: Workshop) -> None:
    workshop.appended.clear()
