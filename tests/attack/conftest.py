"""One rig a level, for all attacks: what one leaves behind would show in the next."""

from collections.abc import Iterator

import pytest

from tests.levels import Rigs, all_rigs


@pytest.fixture(scope="package")
def rigs() -> Iterator[Rigs]:
    with all_rigs() as lent:
        yield lent
