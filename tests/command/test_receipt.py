"""Receipts and rig cards: the same bytes each time, and only from the rig itself."""

import json

import msgspec
import pytest

from tests.command.orders import ALICE, BOB, order
from thermite.command.receipt import (
    open_receipt,
    open_rig_card,
    receipt_id,
    seal_receipt,
    seal_rig_card,
)
from thermite.errors import CommandError
from thermite.schema.command import Receipt, ReceiptCommand, RigCard
from thermite.schema.ids import Sha256

DIGEST = Sha256("ab" * 32)
RECEIPT = Receipt(
    v=1,
    rig=ALICE.public.id,
    ledger="b2" * 16,
    receipt_id=receipt_id(DIGEST, "accepted"),
    command=ReceiptCommand(sha256=DIGEST, id="0c" * 16),
    outcome="accepted",
    code=None,
    message=None,
    warnings=["this command names no checkpoint"],
    event_seq=7,
    assignment="ab" * 16,
    checkpoint=None,
    inclusion=None,
    consistency=None,
    at="2026-03-01T12:00:00Z",
)
CARD = RigCard(
    v=1,
    name="bench",
    rig=ALICE.public.id,
    key=ALICE.public.base64,
    ledger="b2" * 16,
    target="cpu",
    isolation={"level": "none"},
    grade="A",
    sees=0.004,
    checkpoint="",
    at="2026-03-01T12:00:00Z",
)


def code_of(raw: bytes) -> str:
    with pytest.raises(CommandError) as caught:
        open_receipt(raw, ALICE.public)
    return caught.value.code


def test_a_receipts_id_follows_from_digest_and_outcome() -> None:
    # printf 'thermite/receipt/v1%s%s' abab…ab accepted | sha256sum | cut -c1-32
    assert receipt_id(DIGEST, "accepted") == "a2dbbe6bd3846964a6bb15477fde9918"
    assert receipt_id(DIGEST, "finished") != receipt_id(DIGEST, "accepted")


def test_a_receipt_reads_back_and_is_the_same_each_time() -> None:
    raw = seal_receipt(RECEIPT, ALICE)
    assert open_receipt(raw, ALICE.public) == RECEIPT
    assert seal_receipt(RECEIPT, ALICE) == raw


def test_only_the_rigs_own_receipt_is_read() -> None:
    assert code_of(seal_receipt(RECEIPT, BOB)) == "no_trusted_signature"
    assert code_of(order()) == "unknown_payload_type"
    assert code_of(b"{}") == "malformed_envelope"
    other = msgspec.structs.replace(RECEIPT, rig=BOB.public.id)
    assert code_of(seal_receipt(other, ALICE)) == "wrong_rig"


def test_a_receipt_of_a_later_version_says_upgrade() -> None:
    later = json.loads(msgspec.json.encode(RECEIPT)) | {"proof": "x"}
    from thermite.command.envelope import seal
    from thermite.schema.command import RECEIPT_TYPE

    raw = seal(json.dumps(later).encode(), RECEIPT_TYPE, [ALICE])
    with pytest.raises(CommandError, match="upgrade Thermite"):
        open_receipt(raw, ALICE.public)


def test_a_rig_card_reads_back_with_and_without_the_key() -> None:
    raw = seal_rig_card(CARD, ALICE)
    assert open_rig_card(raw, None) == CARD
    assert open_rig_card(raw, ALICE.public) == CARD


@pytest.mark.parametrize(
    ("card", "key"),
    [
        pytest.param(CARD, BOB, id="signed by another key"),
        pytest.param(msgspec.structs.replace(CARD, key=BOB.public.base64), BOB, id="id of another"),
        pytest.param(msgspec.structs.replace(CARD, key="AAAA"), ALICE, id="no key"),
        pytest.param(
            msgspec.structs.replace(CARD, key="AQ" + "A" * 41 + "="), ALICE, id="low-order key"
        ),
    ],
)
def test_a_card_that_its_own_key_does_not_bear_out_is_refused(card: RigCard, key: object) -> None:
    assert key in {ALICE, BOB}
    raw = seal_rig_card(card, ALICE if key is ALICE else BOB)
    with pytest.raises(CommandError):
        open_rig_card(raw, None)


def test_a_known_rigs_card_by_another_key_is_refused() -> None:
    theirs = msgspec.structs.replace(CARD, key=BOB.public.base64, rig=BOB.public.id)
    with pytest.raises(CommandError, match="another rig"):
        open_rig_card(seal_rig_card(theirs, BOB), ALICE.public)
