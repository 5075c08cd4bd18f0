"""Rigs for the door's tests: one without stages, and one with a real spawner at level none."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from tests.harness.goods import Goods
from tests.harness.live import Knock, Live, NoStages
from thermite.rig.stages import Stages
from thermite.rig.start import spawner


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    made = Live(tmp_path / "rig", cast("Stages", NoStages()))
    yield made
    made.close()


@pytest.fixture
def knock(live: Live) -> Knock:
    live.open()
    return Knock(live)


@pytest.fixture(scope="session")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stages]:
    """A spawner at level none: no user is changed, and nothing is killed by uid."""
    with spawner(tmp_path_factory.mktemp("spawner"), isolation="none") as made:
        yield made


@pytest.fixture
def staged(tmp_path: Path, stages: Stages) -> Iterator[Live]:
    made = Live(tmp_path / "rig", stages)
    yield made
    made.close()


@pytest.fixture
def import_knock(staged: Live) -> Knock:
    staged.open()
    return Knock(staged)


@pytest.fixture
def goods(staged: Live, tmp_path: Path) -> Goods:
    return Goods(tmp_path / "goods", staged.orders)
