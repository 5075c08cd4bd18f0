"""A ledger in a fresh folder, with a clock that a test turns by hand."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.ledger.facts import Clock, Facts
from thermite.command.signing_key import SigningKey
from thermite.ledger.append import Ledger


@pytest.fixture
def rig_key() -> SigningKey:
    return SigningKey.from_raw(bytes(range(32)))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def facts(rig_key: SigningKey, clock: Clock) -> Facts:
    return Facts(rig_key, clock)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


@pytest.fixture
def ledger(path: Path, facts: Facts, rig_key: SigningKey, clock: Clock) -> Iterator[Ledger]:
    with Ledger.create(path, facts.opened(), rig_key, now=clock) as made:
        yield made


@pytest.fixture
def reopen(path: Path, rig_key: SigningKey, clock: Clock) -> Callable[[], Ledger]:
    return lambda: Ledger.open(path, rig_key, now=clock)


@pytest.fixture
def filled(ledger: Ledger, facts: Facts, path: Path) -> Path:
    ledger.append([facts.verdict(), facts.steered()])
    ledger.close()
    return path
