"""Keys that were revoked, trust that was reset, events that were lost: what readers must see."""

from pathlib import Path

from tests.audit.test_verify import codes
from tests.ledger.facts import Clock, Facts
from thermite.audit.verify import audit
from thermite.ledger.append import Ledger
from thermite.schema.command import TrustedKey
from thermite.schema.event import KeyRevoked, LedgerGap, RefusalsSuppressed, TrustReset, TrustSet

KEY = "e1" * 16


def trusted(revoked_since: str | None = None) -> TrustedKey:
    return TrustedKey(
        id=KEY, public="AA", label="laptop", roles=["command"], revoked_since=revoked_since
    )


def test_commands_of_a_key_that_was_revoked_later_are_listed(
    ledger: Ledger, facts: Facts, path: Path, clock: Clock
) -> None:
    ledger.append([facts.accepted(1, type="checkpoint_now")])
    clock.turn(600)
    since = clock()
    clock.turn(600)
    ledger.append([facts.accepted(2, type="checkpoint_now")])
    ledger.append([facts.event(KeyRevoked(key=KEY, since=since), assignment=None)])
    ledger.append([facts.accepted(3, type="checkpoint_now")])
    ledger.close()
    found = audit(path)
    assert [(use.seq, use.key) for use in found.revoked_uses] == [(3, KEY)]
    assert ("command_of_revoked_key", 3) in codes(found, "warning")
    assert codes(found) == [("command_of_revoked_key", 5)]
    assert found.accepted == {KEY: 3}


def test_a_revocation_that_names_another_time_later_lists_by_that_time(
    ledger: Ledger, facts: Facts, path: Path, clock: Clock
) -> None:
    since = clock()
    clock.turn(600)
    ledger.append([facts.accepted(1, type="checkpoint_now")])
    clock.turn(600)
    for named in (clock(), since):
        ledger.append([facts.event(KeyRevoked(key=KEY, since=named), assignment=None)])
    ledger.close()
    uses = audit(path).revoked_uses
    assert [(use.seq, use.since) for use in uses] == [(2, since)]


def test_trust_that_names_the_key_again_ends_the_revocation(
    ledger: Ledger, facts: Facts, path: Path
) -> None:
    since = "2026-02-01T00:00:00Z"
    ledger.append([facts.event(KeyRevoked(key=KEY, since=since), assignment=None)])
    ledger.append([facts.event(TrustSet(version=2, keys=[trusted()], by="local"), assignment=None)])
    ledger.append([facts.accepted(1, type="checkpoint_now")])
    ledger.append(
        [facts.event(TrustSet(version=3, keys=[trusted(since)], by="local"), assignment=None)]
    )
    ledger.append([facts.accepted(2, type="checkpoint_now")])
    ledger.close()
    assert codes(audit(path)) == [("command_of_revoked_key", 6)]


def test_a_reset_and_a_gap_are_never_forgotten(ledger: Ledger, facts: Facts, path: Path) -> None:
    ledger.append(
        [
            facts.event(TrustReset(version=4, keys=[trusted()]), assignment=None),
            facts.event(LedgerGap(from_=40, to=57), assignment=None),
            facts.event(
                RefusalsSuppressed(count=11, since="2026-01-31T12:00:00Z"), assignment=None
            ),
            facts.refused("expired"),
        ]
    )
    ledger.close()
    found = audit(path)
    assert codes(found) == [("trust_reset", 2)]
    assert codes(found, "warning")[:1] == [("ledger_gap", 3)]
    assert "events 40 to 57 were lost" in found.findings[1].explain
    assert found.refused == {"suppressed": 11, "expired": 1}
