"""One rig at level none for the tests of a file."""

import json
from collections.abc import Iterator

import pytest

from tests.judge.real.workshop import KIT_FILES, MANIFEST, Workshop, opened, write


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workshop]:
    with opened(tmp_path_factory.mktemp("workshop")) as made:
        yield made


@pytest.fixture(autouse=True)
def fresh(workshop: Workshop) -> None:
    workshop.appended.clear()


@pytest.fixture
def bench(workshop: Workshop) -> Workshop:
    """The workshop with its kit as it was."""
    for file in (workshop.kit / "bench").iterdir():
        file.unlink()
    write(workshop.kit, {**KIT_FILES, "kit.json": json.dumps(MANIFEST)})
    return workshop
