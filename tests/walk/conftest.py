"""One served rig for all that only drops files into its inbox."""

from collections.abc import Iterator

import pytest

from tests.served import ServedRig, served
from tests.walk.served_orders import ServedOrders, orders_for


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedRig]:
    """A rig at level none: nothing here can reach a kill(-1)."""
    with served(tmp_path_factory.mktemp("walk"), users=False) as one:
        one.serve_until_there()
        one.know()
        yield one


@pytest.fixture(scope="module")
def orders(rig: ServedRig) -> ServedOrders:
    return orders_for(rig)
