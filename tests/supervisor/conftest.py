"""A supervisor as a process, and the test as the harness at the other end of its socket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.orders import Orders
from tests.supervisor.harness_end import Harness
from thermite.schema.offer import Hello, encode


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    made = Orders(tmp_path / "rig")
    made.make_folders()
    made.write_trust()
    return made


@pytest.fixture
def harness(orders: Orders) -> Iterator[Harness]:
    made = Harness(orders)
    yield made
    made.end()
    made.sock.close()
    made.theirs.close()


@pytest.fixture
def running(harness: Harness) -> Harness:
    harness.start()
    harness.is_up = True
    assert harness.hear()[0] == Hello(n=0)
    harness.sock.send(encode(Hello(n=1)))
    return harness
