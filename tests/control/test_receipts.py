"""A rig's answers: believed when signed, kept, waited for; two stories of one ledger are proof."""

import base64
import shlex
import subprocess
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.control.desk import Rig, goes_on, tree
from thermite.command.instant import write_instant
from thermite.command.keyring import SigningKey
from thermite.command.note import open_note, read_note, sign_note
from thermite.control.assign import send_order
from thermite.control.home import ControlHome
from thermite.control.order import Order, sign_order
from thermite.control.receipts import (
    SentOrder,
    after,
    collect,
    folder_of,
    keep_checkpoints,
    lost,
    newest_checkpoint,
    note_sent,
    read_receipt,
    receipt_for,
    set_aside,
    unanswered,
)
from thermite.control.rigs import KnownRig, RigChangedError, known_rig
from thermite.control.waiting import Turned, wait_for
from thermite.errors import LedgerError, NotFoundError, UnreachableError
from thermite.ledger.chain import leaf
from thermite.ledger.merkle import Tree
from thermite.schema.command import After, Inclusion, NoBody, Receipt

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def known(home: ControlHome, rig: Rig) -> KnownRig:
    assert rig.outbox.is_dir()
    return known_rig(home, "bench")


@pytest.fixture
def order(known: KnownRig) -> Order:
    key = SigningKey.generate()
    return sign_order("checkpoint_now", NoBody(), rig=known, keys=[key], after=None, now=NOW)


def asked(home: ControlHome, known: KnownRig) -> tuple[Order, After | None]:
    """Return an order, and the checkpoint that it names: the one that control holds."""
    key, named = SigningKey.generate(), after(home, known)
    order = sign_order("checkpoint_now", NoBody(), rig=known, keys=[key], after=named, now=NOW)
    return order, named


def test_a_signed_receipt_is_kept_with_its_checkpoint(
    home: ControlHome, rig: Rig, known: KnownRig, order: Order
) -> None:
    path = rig.answer(order.raw, "accepted")
    (item,) = collect(home, known)
    assert item.receipt is not None
    assert item.receipt.outcome == "accepted"
    path.unlink()
    assert collect(home, known) == [item]  # kept here, whatever becomes of the outbox
    held = newest_checkpoint(home, known)
    assert held is not None
    assert held.size == 9
    found = after(home, known)
    assert found is not None
    assert (found.size, found.root) == (9, base64.b64encode(tree().root(9)).decode())


def test_a_receipt_that_is_kept_is_not_written_again(
    home: ControlHome, rig: Rig, known: KnownRig, order: Order
) -> None:
    path = rig.answer(order.raw, "accepted")
    collect(home, known)
    kept = folder_of(home, known) / path.name
    assert kept.read_bytes() == path.read_bytes()
    before = kept.stat().st_ino
    collect(home, known)
    assert kept.stat().st_ino == before


@pytest.mark.parametrize("how", ["other key", "other name", "other id", "other note", "truncated"])
def test_a_receipt_that_can_not_be_believed_says_why_and_is_not_kept(
    home: ControlHome, rig: Rig, known: KnownRig, order: Order, how: str
) -> None:
    stranger = Rig(rig.folder, SigningKey.generate())
    if how == "other key":
        stranger.answer(order.raw, "accepted", rig=rig.key.public.id)
    elif how == "other name":
        path = rig.answer(order.raw, "accepted")
        path.rename(path.with_name("0" * 12 + ".accepted.receipt.json"))
    elif how == "other id":
        rig.answer(order.raw, "accepted", receipt_id="0" * 32)
    elif how == "other note":
        rig.answer(order.raw, "accepted", checkpoint=stranger.note(9))
    else:
        path = rig.answer(order.raw, "accepted")
        path.write_bytes(path.read_bytes()[:100])
    (item,) = collect(home, known)
    assert item.receipt is None
    assert item.problem
    assert list(folder_of(home, known).glob("*.receipt.json")) == []


def test_other_files_of_an_outbox_are_passed_over(
    home: ControlHome, rig: Rig, known: KnownRig
) -> None:
    (rig.outbox / ".half.receipt.json").write_bytes(b"")
    (rig.outbox / "notes.txt").write_bytes(b"")
    assert collect(home, known) == []


def test_the_newest_checkpoint_stays_and_an_older_one_changes_nothing(
    home: ControlHome, rig: Rig, known: KnownRig
) -> None:
    keep_checkpoints(home, known, [rig.note(20), rig.note(10)])
    held = newest_checkpoint(home, known)
    assert held is not None
    assert held.size == 20


def test_two_ledgers_of_one_size_are_kept_as_proof(
    home: ControlHome, rig: Rig, known: KnownRig
) -> None:
    keep_checkpoints(home, known, [rig.note(20)])
    with pytest.raises(LedgerError, match="two different ledgers of 20 events"):
        keep_checkpoints(home, known, [rig.note(20, root=b"s" * 32)])
    kept = {path.name: path.read_text() for path in folder_of(home, known).glob("fork-*")}
    roots = {name: open_note(text, rig.key.public).root for name, text in kept.items()}
    assert roots == {"fork-20-held.note": tree().root(20), "fork-20-other.note": b"s" * 32}
    held = newest_checkpoint(home, known)
    assert held is not None
    assert held.root == tree().root(20)


def test_what_is_held_of_a_lost_ledger_can_be_set_aside_more_than_once(
    home: ControlHome, rig: Rig, known: KnownRig
) -> None:
    for number in (1, 2):
        keep_checkpoints(home, known, [rig.note(20)])
        with pytest.raises(LedgerError) as caught:
            keep_checkpoints(home, known, [rig.note(20, root=b"s" * 32)])
        command = set_aside(home, known)
        assert str(caught.value).endswith(f"keep the proof and begin anew: {command}")
        subprocess.run(shlex.split(command), check=True)
        assert newest_checkpoint(home, known) is None
        kept = home.root / f"lost-{known.rig[:12]}-{number}"
        assert len(list(kept.glob("fork-20-*.note"))) == 2


@pytest.mark.parametrize("code", ["ledger_rolled_back", "ledger_forked"])
def test_the_refusal_of_a_rig_that_lost_events_does_not_replace_what_shows_the_loss(
    home: ControlHome, rig: Rig, known: KnownRig, code: str
) -> None:
    keep_checkpoints(home, known, [rig.note(20)])
    order, named = asked(home, known)
    send_order(home, known, order)
    longer = rig.note(25, root=b"s" * 32)
    refusal = {"code": code, "message": "x", "checkpoint": longer, "consistency": None}
    rig.answer(order.raw, "refused", **refusal)
    found = collect(home, known)
    assert after(home, known) == named
    assert lost(home, known, found) == named
    subprocess.run(shlex.split(set_aside(home, known)), check=True)
    collect(home, known)
    begun = newest_checkpoint(home, known)
    assert begun is not None
    assert begun.size == 25


@pytest.mark.parametrize("how", ["a refusal", "another's order", "the rig's card"])
def test_only_a_checkpoint_that_is_shown_to_go_on_replaces_the_one_that_is_held(
    home: ControlHome, rig: Rig, known: KnownRig, how: str
) -> None:
    keep_checkpoints(home, known, [rig.note(20)])
    order, named = asked(home, known)
    rewritten = rig.note(25, root=b"s" * 32)
    if how == "a refusal":
        send_order(home, known, order)
        rig.answer(order.raw, "refused", code="wrong_state", checkpoint=rewritten, consistency=None)
    elif how == "another's order":
        rig.answer(order.raw, "accepted", checkpoint=rewritten)
    else:
        keep_checkpoints(home, known, [rewritten])
    collect(home, known)
    assert after(home, known) == named
    mine, _ = asked(home, known)
    send_order(home, known, mine)
    rig.answer(mine.raw, "accepted", checkpoint=rig.note(24), consistency=goes_on({"size": 20}, 24))
    collect(home, known)
    found = newest_checkpoint(home, known)
    assert found is not None
    assert (found.size, found.root) == (24, tree().root(24))


@pytest.mark.parametrize(
    ("code", "held", "is_lost"),
    [
        pytest.param("ledger_rolled_back", 20, True, id="rolled back"),
        pytest.param("ledger_forked", 20, True, id="forked"),
        pytest.param("wrong_state", 20, False, id="another refusal"),
        pytest.param("ledger_rolled_back", 21, False, id="a newer checkpoint is held"),
    ],
)
def test_a_loss_is_one_that_stands_in_the_way_of_the_next_order(
    home: ControlHome, rig: Rig, known: KnownRig, code: str, held: int, *, is_lost: bool
) -> None:
    keep_checkpoints(home, known, [rig.note(20)])
    order, named = asked(home, known)
    send_order(home, known, order)
    rig.answer(order.raw, "refused", code=code, message="x")
    keep_checkpoints(home, known, [rig.note(held)], shown=True)
    assert (lost(home, known, collect(home, known)) == named) is is_lost


def test_a_strangers_checkpoint_is_refused(home: ControlHome, rig: Rig, known: KnownRig) -> None:
    stranger = Rig(rig.folder, SigningKey.generate())
    with pytest.raises(LedgerError, match="another key"):
        keep_checkpoints(home, known, [stranger.note(20)])


def test_an_order_without_a_receipt_is_noticed_after_its_time(
    home: ControlHome, rig: Rig, known: KnownRig, order: Order
) -> None:
    sent = SentOrder(
        digest=order.digest, id=order.id, type=order.type, at=write_instant(NOW), file="x"
    )
    note_sent(home, known, sent)
    soon, late = NOW + timedelta(minutes=9), NOW + timedelta(minutes=10)
    assert unanswered(home, known, [], now=soon, after_min=10) == []
    assert unanswered(home, known, [], now=late, after_min=10) == [sent]
    rig.answer(order.raw, "refused", code="wrong_state", message="x")
    assert unanswered(home, known, collect(home, known), now=late, after_min=10) == []


def test_a_receipt_by_hand_is_verified_or_not_there(
    rig: Rig, known: KnownRig, order: Order, tmp_path: Path
) -> None:
    assert read_receipt(rig.answer(order.raw, "accepted"), known).receipt is not None
    with pytest.raises(NotFoundError):
        read_receipt(tmp_path / "none", known)


def test_a_decision_comes_before_a_wait(rig: Rig, known: KnownRig, order: Order) -> None:
    assert receipt_for(known, order.digest) is None
    rig.answer(order.raw, "waiting", code="bundle_missing", message="kit.bundle is not here yet")
    waiting = receipt_for(known, order.digest)
    assert waiting is not None
    assert waiting.outcome == "waiting"
    rig.answer(order.raw, "accepted")
    decided = receipt_for(known, order.digest)
    assert decided is not None
    assert decided.outcome == "accepted"


def test_a_forged_answer_to_an_order_is_not_taken_for_one(
    rig: Rig, known: KnownRig, order: Order
) -> None:
    Rig(rig.folder, SigningKey.generate()).answer(order.raw, "accepted", rig=rig.key.public.id)
    with pytest.raises(RigChangedError, match="not signed by rig"):
        receipt_for(known, order.digest)


def test_waiting_ends_with_the_decision_and_says_what_it_waits_for(
    rig: Rig, known: KnownRig, order: Order
) -> None:
    said: list[str] = []

    def decide() -> None:
        rig.answer(order.raw, "waiting", code="bundle_missing", message="kit.bundle is missing")
        while not any("kit.bundle" in line for line in said):
            time.sleep(0.01)
        rig.answer(order.raw, "accepted")

    thread = threading.Thread(target=decide)
    thread.start()
    found = wait_for(known, order, "x.cmd.json", most_s=30, tell=said.append)
    thread.join()
    assert isinstance(found, Receipt)
    assert found.outcome == "accepted"
    assert any("the rig waits: kit.bundle is missing" in line for line in said)


def test_waiting_ends_in_time_without_an_answer(known: KnownRig, order: Order) -> None:
    assert wait_for(known, order, "x.cmd.json", most_s=0.05, tell=lambda _: None) is None


def test_a_file_that_was_moved_aside_ends_the_wait_with_its_reason(
    rig: Rig, known: KnownRig, order: Order
) -> None:
    refused = rig.inbox / "refused"
    refused.mkdir()
    (refused / "20260301-abc-x.cmd.json.reason.json").write_text(
        '{"code": "no_trusted_signature", "message": "none of 1", "sha256": "", "seq": 3}'
    )
    found = wait_for(known, order, "x.cmd.json", most_s=30, tell=lambda _: None)
    assert found == Turned(code="no_trusted_signature", message="none of 1")
    assert wait_for(known, order, "y.cmd.json", most_s=0, tell=lambda _: None) is None


def test_a_rig_that_has_gone_ends_the_wait(rig: Rig, known: KnownRig, order: Order) -> None:
    (rig.outbox / "rig.json").unlink()
    rig.outbox.rmdir()
    with pytest.raises(UnreachableError, match="is not there"):
        wait_for(known, order, "x", most_s=30, tell=lambda _: None)


def _grown(rig: Rig, *, forked: bool = False) -> tuple[After, str, Inclusion]:
    """A checkpoint of 5 events, and one of 9 with the proof that it goes on from there."""
    old, new = Tree(), Tree()
    for count in range(9):
        new.append(leaf(b"event %d" % count))
        if count < 5:
            old.append(leaf(b"other %d" % count if forked else b"event %d" % count))
    said = read_note(rig.note(9))
    note = sign_note(replace(said, root=new.root(9)), rig.key)
    hashes = [base64.b64encode(hashed).decode() for hashed in new.consistency(5, 9)]
    held = After(size=5, root=base64.b64encode(old.root(5)).decode())
    return held, note, Inclusion(from_=5, to=9, hashes=hashes)


@pytest.mark.parametrize(
    ("how", "believed"),
    [
        pytest.param("proven", True, id="goes on"),
        pytest.param("forked", False, id="another history"),
        pytest.param("unproven", False, id="no proof"),
    ],
)
def test_a_receipt_must_go_on_from_the_checkpoint_that_its_order_named(
    home: ControlHome, rig: Rig, known: KnownRig, how: str, believed: bool
) -> None:
    held, note, proof = _grown(rig, forked=how == "forked")
    key = SigningKey.generate()
    order = sign_order("checkpoint_now", NoBody(), rig=known, keys=[key], after=held, now=NOW)
    send_order(home, known, order)
    consistency = None if how == "unproven" else proof
    rig.answer(order.raw, "accepted", checkpoint=note, consistency=consistency)
    (item,) = collect(home, known)
    assert (item.receipt is not None) is believed
    assert believed or "not shown to go on from the one of 5 events" in (item.problem or "")
    newest = newest_checkpoint(home, known)
    assert (newest is not None) is believed


def test_a_refusal_need_not_prove_what_its_order_named(
    home: ControlHome, rig: Rig, known: KnownRig
) -> None:
    held, note, _ = _grown(rig)
    key = SigningKey.generate()
    order = sign_order("checkpoint_now", NoBody(), rig=known, keys=[key], after=held, now=NOW)
    send_order(home, known, order)
    rig.answer(order.raw, "refused", checkpoint=note, code="wrong_state", message="no")
    (item,) = collect(home, known)
    assert item.problem is None
