"""Fifty stages that try to live on, one after the other, and none does: the long form in short.

`python -m tests.attack.many` runs a thousand at every level. What they do is tried one by one in
test_attacks; here each meets what the ones before it have done to the rig.
"""

import pytest

from tests.attack.many import run
from tests.levels import OWN_USER, Rigs
from thermite.schema.stage import LevelName

COUNT = 50


@pytest.mark.parametrize("level", OWN_USER)
def test_nothing_survives_a_row_of_stages_that_try_to_live_on(rigs: Rigs, level: LevelName) -> None:
    seen = run(rigs.at(level), level, COUNT // len(OWN_USER))
    assert seen.problems == []
    assert len(seen.ends_ms) == COUNT // len(OWN_USER)
