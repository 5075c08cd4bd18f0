"""A harness that dies as an append begins, or as soon as it is durable, comes to the same end.

A part of the moments each day, drawn by a number that is told; `tests/crash/every_append` takes
them all.
"""

import os
import random
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.crash.appends import CAMPAIGNS, KINDS, Cut, Whole

SEED = int(os.environ.get("THERMITE_SEED") or datetime.now(UTC).date().toordinal())
SHARE = {"climb": 0.1, "hold": 0.1, "goal": 0.2}
"""Part of the moments that a run takes; ten days take most of them."""


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_a_harness_that_dies_at_an_append_goes_on_to_the_same_end(
    tmp_path: Path, name: str
) -> None:
    def is_drawn(cut: Cut) -> bool:
        return random.Random(f"{SEED}/{name}/{cut}").random() < SHARE[name]

    whole = Whole(tmp_path, CAMPAIGNS[name], is_drawn)
    assert {kind.__name__ for kind in KINDS[name] - whole.kinds()} == set()
    assert [f"{cut}: {one}" for cut, one in whole.differences()] == [], f"THERMITE_SEED={SEED}"
