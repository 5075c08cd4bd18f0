"""The commands that judge an attempt again ask what its campaign asked."""

from pathlib import Path

import msgspec
import pytest

from thermite.campaign.fold import fold
from thermite.campaign.state import State
from thermite.ledger.replay import recorded
from thermite.report.attempt import repro

LEDGER = Path(__file__).parents[1] / "golden/promotion/ledger.db"


@pytest.mark.parametrize("min_effect", [0.03, 0.012345678901, 1e-7])
def test_the_least_gain_is_told_to_its_last_digit(min_effect: float) -> None:
    state = State()
    for row in recorded(LEDGER):
        fold(state, row.seq, row.event)
    found = next(iter(state.assignments.values()))
    assert found.contract.objective is not None
    objective = msgspec.structs.replace(found.contract.objective, min_effect=min_effect)
    found.contract = msgspec.structs.replace(found.contract, objective=objective)
    words = repro("repos", found, found.attempts[1])[-1].split()
    assert float(words[words.index("--min-effect") + 1]) == min_effect
