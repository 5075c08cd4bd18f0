"""The formulas of the hash chain, by values worked out by hand from their text."""

from hashlib import sha256
from pathlib import Path

from tests.ledger.facts import LEDGER, Facts
from thermite.command.signing_key import SigningKey
from thermite.ledger.append import Ledger
from thermite.ledger.chain import genesis, leaf, leaves, link, links
from thermite.ledger.replay import recorded


def test_the_formulas() -> None:
    key, before = b"\x11" * 32, b"\x22" * 32
    assert (
        genesis("0f" * 16, key)
        == sha256(b"thermite.genesis.v1\x00" + b"\x0f" * 16 + b"\x11" * 32).digest()
    )
    assert leaf(b"{}") == sha256(b"\x00{}").digest()
    assert (
        link(before, 258, b"\x33" * 32)
        == sha256(
            b"thermite.event.v1\x00"
            + b"\x22" * 32
            + b"\x00\x00\x00\x00\x00\x00\x01\x02"
            + b"\x33" * 32
        ).digest()
    )


def test_a_ledger_is_chained_by_them(
    ledger: Ledger, facts: Facts, rig_key: SigningKey, path: Path
) -> None:
    ledger.append([facts.steered(), facts.steered()])
    head = sha256(b"thermite.genesis.v1\0" + bytes.fromhex(LEDGER) + rig_key.public.raw).digest()
    for number, row in enumerate(recorded(path), 1):
        body = sha256(b"\0" + row.body).digest()
        head = sha256(b"thermite.event.v1\0" + head + number.to_bytes(8, "big") + body).digest()
        assert row.hash == head
    assert ledger.head == head


def test_many_events_are_hashed_as_each_one_is() -> None:
    bodies = [b"a", b"b", b"c"]
    before = b"\x22" * 32
    first = link(before, 7, leaf(b"a"))
    second = link(first, 8, leaf(b"b"))
    assert leaves(bodies) == [leaf(b"a"), leaf(b"b"), leaf(b"c")]
    assert links(before, 7, leaves(bodies)) == [first, second, link(second, 9, leaf(b"c"))]
    assert links(before, 7, []) == []
