"""The history of a ledger: the same at every prefix, and never an exception for a stranger's."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.ledger.facts import ASSIGNMENT, Clock, Facts
from tests.property.payloads import events
from thermite.audit.findings import Findings
from thermite.audit.fold import History, state_at
from thermite.campaign.fold import fold
from thermite.campaign.state import State
from thermite.command.signing_key import SigningKey
from thermite.ledger.append import Ledger
from thermite.report.ledger import state_document
from thermite.schema.event import ENVELOPES, Event

KEY = SigningKey.from_raw(bytes(range(32)))
HARD = settings(max_examples=30, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def story() -> list[Event]:
    facts = Facts(KEY, Clock())
    return [facts.opened(), facts.probe(), *facts.campaign(), facts.refused()]


@pytest.fixture(scope="module")
def path(story: list[Event], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("history") / "ledger.db"
    with Ledger.create(path, story[0], KEY, now=Clock()) as ledger:
        ledger.append(story[1:])
    return path


@pytest.mark.parametrize("until", range(1, 23))
def test_the_state_at_an_event_is_the_fold_up_to_it(
    until: int, story: list[Event], path: Path
) -> None:
    state = State()
    for seq, event in enumerate(story[:until], 1):
        state = fold(state, seq, event)
    assert state_at(path, until) == state
    assert state_document(state_at(path, until)) == state_document(state)


@pytest.mark.parametrize("tag", ENVELOPES)
def test_an_event_out_of_place_is_a_finding_at_most(tag: str, story: list[Event]) -> None:
    @HARD
    @given(
        events(tag),
        st.sampled_from([ASSIGNMENT, None, "other"]),
        st.integers(0, len(story)),
        st.sampled_from([0, 1, 2, None]),
    )
    def holds(event: Event, about: str | None, at: int, attempt: int | None) -> None:
        findings = Findings()
        history = History(findings)
        data = event.data
        if attempt is not None and hasattr(data, "attempt"):
            data = msgspec.structs.replace(data, attempt=attempt)
        placed = msgspec.structs.replace(event, assignment=about, data=data)
        for seq, one in enumerate([*story[:at], placed, *story[at:]], 1):
            history.take(seq, one)
        assert {one.code for one in findings.listed} <= {"illegal_transition"}

    holds()
