"""What an audit finds in a ledger that somebody changed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.facts import Clock, Facts
from thermite.audit.verify import audit
from thermite.command.signing_key import SigningKey
from thermite.ledger.append import Ledger
from thermite.schema.audit import Audit


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
def ledger(tmp_path: Path, facts: Facts, rig_key: SigningKey, clock: Clock) -> Iterator[Ledger]:
    with Ledger.create(tmp_path / "ledger.db", facts.opened(), rig_key, now=clock) as made:
        yield made


def codes(found: Audit) -> list[tuple[str, int | None]]:
    return [(one.code, one.seq or one.size) for one in found.findings if one.severity == "finding"]


def test_a_whole_ledger_has_no_finding(ledger: Ledger, facts: Facts, tmp_path: Path) -> None:
    ledger.append([facts.probe()])
    ledger.append(facts.campaign())
    found = audit(tmp_path / "ledger.db")
    assert codes(found) == []
    assert (found.events, found.checkpoints_valid, found.newest_checkpoint) == (21, 2, 21)
    assert [one.code for one in found.findings] == ["no_external_checkpoint"]
