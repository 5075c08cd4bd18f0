"""What the door decides on commands that import nothing: ledger, inbox and outbox afterwards."""

import base64
import hashlib
import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.harness.live import Knock, Live, until
from tests.orders import at, trusted
from tests.requirement import shows
from thermite.campaign.state import State
from thermite.command.note import open_note
from thermite.command.receipt import receipt_id
from thermite.command.signing_key import SigningKey
from thermite.command.strict_base64 import decode
from thermite.errors import UsageError
from thermite.harness.inbox import Shelf, import_path_problem
from thermite.harness.refusals import MOST_A_MINUTE
from thermite.harness.trust import first_trust
from thermite.ledger.chain import leaf
from thermite.ledger.merkle import root_of_inclusion
from thermite.ledger.replay import recorded
from thermite.schema.ids import Sha256
from thermite.schema.offer import Decided


def digest_of(raw: bytes) -> str:
    return hashlib.sha256(base64.b64decode(json.loads(raw)["payload"])).hexdigest()


def test_an_accepted_command_is_an_event_a_moved_file_and_a_receipt(
    live: Live, knock: Knock
) -> None:
    raw = live.orders.command()
    answer = knock.accepted(raw)
    assert live.types() == ["command_accepted"]
    assert live.files("new") == []
    assert [name.partition("-")[2][:12] for name in live.files("done")] == [digest_of(raw)[:12]]
    receipt = live.receipt(answer.receipt)
    assert (receipt.outcome, receipt.event_seq, receipt.code) == ("accepted", 4, None)
    assert receipt.warnings == ["this command names no checkpoint"]
    assert receipt.receipt_id == receipt_id(Sha256(receipt.command.sha256), "accepted")
    assert (live.folder.blobs / receipt.command.sha256).read_bytes() == raw


@shows("K4")
def test_a_command_that_comes_again_gets_its_first_receipt(live: Live, knock: Knock) -> None:
    raw = live.orders.command()
    first = knock.accepted(raw)
    kept = (live.folder.outbox / (first.receipt or "")).read_bytes()
    again = [knock.decided(raw) for _ in range(2)]
    assert [(one.outcome, one.receipt) for one in again] == [("duplicate", first.receipt)] * 2
    assert live.types() == ["command_accepted"]
    assert (live.folder.outbox / (first.receipt or "")).read_bytes() == kept
    assert len(live.files("done")) == 3


@shows("K4")
def test_a_resend_after_expiry_and_after_a_restart_is_a_duplicate(live: Live) -> None:
    left_s = 6.0  # of the five minutes that a late command is still taken
    begun = time.monotonic()
    expires = at(left_s / 60 - 5)
    raw = live.orders.command(issued_at=at(-60), not_before=at(-60), expires_at=expires)
    live.open()
    first = Knock(live).accepted(raw)
    live.reopen()
    live.open()
    time.sleep(max(0.0, begun + left_s + 0.5 - time.monotonic()))
    again = Knock(live).decided(raw)
    assert (again.outcome, again.receipt) == ("duplicate", first.receipt)


@shows("K4")
def test_a_known_id_with_other_content_is_refused(live: Live, knock: Knock) -> None:
    knock.accepted(live.orders.command(id="a" * 32))
    answer = knock.refused(live.orders.command(id="a" * 32, expires_at=at(30)))
    assert answer.code == "id_reused"
    assert live.types() == ["command_accepted", "command_refused"]


@shows("K4")
def test_the_same_body_under_a_new_id_is_a_new_command(live: Live, knock: Knock) -> None:
    knock.accepted(live.orders.command())
    knock.accepted(live.orders.command())
    assert live.types() == ["command_accepted", "command_accepted"]


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        pytest.param({"rig": "f" * 32}, "wrong_rig", id="rig"),
        pytest.param({"ledger": "f" * 32}, "wrong_ledger", id="ledger"),
        pytest.param({"issuer": "f" * 32}, "issuer_did_not_sign", id="issuer"),
        pytest.param(
            {"issued_at": at(-60), "not_before": at(-60), "expires_at": at(-6)},
            "expired",
            id="time",
        ),
        pytest.param({"expires_at": at(60 * 24 * 8)}, "window_too_long", id="window"),
        pytest.param({"surprise": 1}, "malformed_payload", id="field"),
        pytest.param({"after": {"size": 99, "root": "x"}}, "ledger_rolled_back", id="after"),
        pytest.param({"after": {"size": 2, "root": "x"}}, "ledger_forked", id="fork"),
    ],
)
def test_a_trusted_sender_gets_a_receipt_for_a_refusal(
    live: Live, knock: Knock, changed: dict[str, Any], code: str
) -> None:
    answer = knock.refused(live.orders.command(**changed))
    assert answer.code == code
    receipt = live.receipt(answer.receipt)
    assert (receipt.outcome, receipt.code, receipt.event_seq) == ("refused", code, 4)
    assert receipt.message == answer.message
    [reason] = live.reasons()
    said = json.loads(reason.read_bytes())
    assert (said["code"], said["message"], said["seq"]) == (code, answer.message, 4)
    assert said["what to do"]
    assert (reason.parent / reason.name.removesuffix(".reason.json")).is_file()


def test_a_command_that_is_refused_again_gets_its_first_receipt(live: Live) -> None:
    raw = live.orders.command(issued_at=at(-60), not_before=at(-60), expires_at=at(-6))
    live.open()
    knock = Knock(live)
    first = knock.refused(raw)
    path = live.folder.outbox / str(first.receipt)
    before = path.read_bytes()
    os.utime(path, (1, 1))

    def refused_again(knock: Knock) -> None:
        again = knock.refused(raw)
        assert (again.code, again.message) == ("expired", first.message)
        assert again.receipt == first.receipt
        assert path.read_bytes() == before
        assert path.stat().st_mtime > 1

    refused_again(knock)
    live.reopen()
    live.open()
    refused_again(Knock(live))
    assert live.types().count("command_refused") == 1
    assert [json.loads(one.read_bytes())["seq"] for one in live.reasons()] == [4, 4, 4]


def test_a_command_that_is_refused_for_another_reason_is_refused_anew(
    live: Live, knock: Knock
) -> None:
    orders, other = live.orders, SigningKey.generate()
    keys = msgspec.to_builtins([trusted(orders.key), trusted(other, roles=["command"])])
    knock.accepted(orders.command("update_trust", {"version": 2, "keys": keys}))
    body = {"assignment": "a" * 32, "now": False}
    raw = orders.sealed(orders.payload("stop_campaign", body, issuer=other.public.id), other)
    assert knock.refused(raw).code == "not_found"
    knock.accepted(orders.command("revoke_key", {"key": other.public.id, "since": at(0)}))
    answer = knock.refused(raw)
    assert answer.code == "key_revoked"
    assert live.receipt(answer.receipt).code == "key_revoked"
    assert [event.code for event in live.events("command_refused")] == ["not_found", "key_revoked"]


def test_a_stranger_gets_a_reason_and_no_receipt(live: Live, knock: Knock) -> None:
    answer = knock.refused(live.orders.sealed(live.orders.payload(), SigningKey.generate()))
    assert (answer.code, answer.receipt) == ("no_trusted_signature", None)
    assert len(live.reasons()) == 1
    assert not list(live.folder.outbox.glob("*.refused.receipt.json"))
    [event] = live.events("command_refused")
    assert (event.code, event.digest, event.message) == ("no_trusted_signature", None, None)


def test_a_command_that_is_not_valid_yet_waits_with_one_receipt(live: Live, knock: Knock) -> None:
    raw = live.orders.command(not_before=at(30), expires_at=at(60))
    path = live.orders.drop(raw)
    first, second = knock.waits(raw, path), knock.waits(raw, path)
    assert (first.code, second.code) == ("not_yet_valid", "not_yet_valid")
    assert path.exists()
    [waiting] = live.folder.outbox.glob("*.waiting.receipt.json")
    assert live.receipt(waiting.name).code == "not_yet_valid"
    assert live.types() == []


def test_what_does_not_fit_the_ledger_locks_the_rig_against_assignments(
    live: Live, knock: Knock
) -> None:
    knock.refused(live.orders.command(after={"size": 99, "root": "x"}))
    body = {"contract": {}, "imports": [], "mcp_servers": [], "providers": {"mcp": []}}
    assert knock.refused(live.orders.command("assign_campaign", body)).code == "ledger_locked"
    live.reopen()
    live.open()
    again = Knock(live)
    assert again.refused(live.orders.command("assign_campaign", body)).code == "ledger_locked"
    again.accepted(live.orders.command())


def test_a_receipt_proves_its_event_in_its_checkpoint(live: Live, knock: Knock) -> None:
    for _ in range(5):
        answer = knock.accepted(live.orders.command())
    receipt = live.receipt(answer.receipt)
    note = open_note(receipt.checkpoint or "", live.orders.rig_key.public)
    row = next(recorded(live.folder.ledger, after=(receipt.event_seq or 0) - 1))
    proof = [decode(one) for one in receipt.inclusion or []]
    found = root_of_inclusion(leaf(row.body), row.seq - 1, note.size, proof)
    assert found == note.root


def test_a_command_that_names_a_checkpoint_gets_a_consistency_proof(
    live: Live, knock: Knock
) -> None:
    root = base64.b64encode(live.book.ledger.root_at(2)).decode()
    answer = knock.accepted(live.orders.command(after={"size": 2, "root": root}))
    receipt = live.receipt(answer.receipt)
    assert receipt.warnings == []
    assert receipt.consistency is not None
    assert (receipt.consistency.from_, receipt.consistency.to) == (2, 4)


@shows("K12")
def test_receipts_are_made_again_byte_for_byte(live: Live) -> None:
    live.open()
    knock = Knock(live)
    knock.accepted(live.orders.command())
    knock.refused(live.orders.command(rig="f" * 32))
    before = {path.name: path.read_bytes() for path in live.folder.outbox.glob("*.receipt.json")}
    assert len(before) == 2
    for name in before:
        (live.folder.outbox / name).unlink()
    (live.folder.outbox / "gone.waiting.receipt.json").write_bytes(b"old")
    live.reopen()
    live.open()
    after = {path.name: path.read_bytes() for path in live.folder.outbox.glob("*.receipt.json")}
    assert after == before


def test_a_kill_between_commit_and_move_is_found_as_a_duplicate(live: Live) -> None:
    """What a kill leaves: the event, the file still in new/, and no receipt."""
    live.open()
    knock = Knock(live)
    raw = live.orders.command()
    first = knock.accepted(raw)
    kept = (live.folder.outbox / (first.receipt or "")).read_bytes()
    [done] = live.files("done")
    (live.state / "inbox" / "done" / done).rename(live.orders.new / "again.cmd.json")
    (live.folder.outbox / (first.receipt or "")).unlink()
    live.reopen()
    live.open()
    answer = Knock(live).offer(raw, live.orders.new / "again.cmd.json")
    assert isinstance(answer, Decided)
    assert answer.outcome == "duplicate"
    assert (live.folder.outbox / (first.receipt or "")).read_bytes() == kept
    assert live.files("new") == []


def test_a_kill_between_new_and_done_puts_the_file_back(live: Live) -> None:
    (live.state / "inbox" / "work" / "ab12-left.cmd.json").write_bytes(b"{}")
    live.open()
    assert live.files("work") == []
    assert live.files("new") == ["ab12-left.cmd.json"]


def test_a_flood_of_refusals_is_counted_and_not_recorded(live: Live, knock: Knock) -> None:
    for _ in range(MOST_A_MINUTE + 5):
        knock.refused(live.orders.sealed(live.orders.payload(), SigningKey.generate()))
    live.door.close()
    assert live.types() == ["command_refused"] * MOST_A_MINUTE + ["refusals_suppressed"]
    assert live.events("refusals_suppressed")[0].count == 5
    assert len(live.reasons()) == MOST_A_MINUTE + 5


def test_trust_moves_with_the_old_root_and_the_new_one(live: Live, knock: Knock) -> None:
    orders, new = live.orders, SigningKey.generate()
    keys = msgspec.to_builtins(
        [trusted(new, roles=["root"]), trusted(orders.key, roles=["command"])]
    )
    body = {"version": 2, "keys": keys}
    alone = knock.refused(orders.command("update_trust", body))
    assert alone.code == "no_trusted_signature"
    assert (
        knock.refused(orders.command("update_trust", body | {"version": 3})).code == "wrong_state"
    )
    payload = orders.payload("update_trust", body)
    knock.accepted(orders.sealed(payload, orders.key, new))
    cache = json.loads((live.state / "trust.json").read_bytes())
    assert (cache["version"], [key["id"] for key in cache["keys"]]) == (
        2,
        [new.public.id, orders.key.public.id],
    )
    assert knock.refused(orders.command("update_trust", body | {"version": 3})).code == (
        "key_not_allowed"
    )


def test_a_revoked_key_gives_no_more_orders(live: Live, knock: Knock) -> None:
    orders, other = live.orders, SigningKey.generate()
    keys = msgspec.to_builtins([trusted(orders.key), trusted(other, roles=["command"])])
    knock.accepted(orders.command("update_trust", {"version": 2, "keys": keys}))
    payload = orders.payload(issuer=other.public.id)
    first = knock.accepted(orders.sealed(payload, other))
    knock.accepted(orders.command("revoke_key", {"key": other.public.id, "since": at(0)}))
    again = orders.payload(issuer=other.public.id)
    assert knock.refused(orders.sealed(again, other)).code == "key_revoked"
    assert knock.refused(orders.sealed(payload, other)).code == "key_revoked"
    assert first.receipt is not None


def test_a_key_is_revoked_since_a_time_that_was_and_that_can_be_put_right(
    live: Live, knock: Knock
) -> None:
    """A time to come would hide what an audit should list; a wrong one is named anew."""
    orders, other = live.orders, SigningKey.generate()
    keys = msgspec.to_builtins([trusted(orders.key), trusted(other, roles=["command"])])
    knock.accepted(orders.command("update_trust", {"version": 2, "keys": keys}))

    def revoked(since: str) -> str | None:
        return knock.decided(
            orders.command("revoke_key", {"key": other.public.id, "since": since})
        ).code

    assert revoked(at(60)) == "malformed_body"
    assert [key.revoked_since for key in live.book.state.trust] == [None, None]
    late, early = at(0), at(-60)
    assert [revoked(late), revoked(late), revoked(early)] == [None, "wrong_state", None]
    assert [key.revoked_since for key in live.book.state.trust] == [None, early]
    assert revoked("2026-13-01T00:00:00Z") == "malformed_body"
    root = {"key": orders.key.public.id, "since": early}
    assert knock.refused(orders.command("revoke_key", root)).code == "wrong_state"


@pytest.mark.parametrize(
    ("kind", "body", "code"),
    [
        pytest.param("pause_campaign", {"assignment": "a" * 32}, "not_found", id="pause"),
        pytest.param("stop_campaign", {"assignment": "x", "now": True}, "not_found", id="stop"),
        pytest.param("steer_campaign", {"assignment": "a" * 32}, "malformed_body", id="steer"),
        pytest.param(
            "vote_review",
            {"assignment": "a", "attempt": 1, "goal": "g", "vote": "met", "reason": ""},
            "not_found",
            id="vote",
        ),
        pytest.param("revoke_key", {"key": "a" * 32, "since": "now"}, "not_found", id="revoke"),
    ],
)
def test_commands_about_nothing_are_refused(
    live: Live, knock: Knock, kind: str, body: dict[str, object], code: str
) -> None:
    assert knock.refused(live.orders.command(kind, body)).code == code


@shows("K12")
def test_an_outbox_that_refuses_holds_up_no_decision(live: Live, knock: Knock) -> None:
    aside = live.folder.outbox.rename(live.state / "aside")
    answer = knock.accepted(live.orders.command())
    assert live.types() == ["command_accepted"]
    aside.rename(live.folder.outbox)
    until((live.folder.outbox / (answer.receipt or "")).exists, "the receipt")
    assert live.receipt(answer.receipt).event_seq == 4
    assert live.faults == []


def test_an_order_that_cannot_be_kept_waits(live: Live, knock: Knock) -> None:
    aside = live.folder.blobs.rename(live.state / "aside")
    raw = live.orders.command()
    path = live.orders.drop(raw)
    assert knock.waits(raw, path).code == "rig_trouble"
    assert live.types() == []
    aside.rename(live.folder.blobs)
    answer = knock.offer(raw, path)
    assert getattr(answer, "outcome", None) == "accepted"


def test_done_and_refused_keep_to_their_cap(tmp_path: Path) -> None:
    shelf = tmp_path / "refused"
    shelf.mkdir()
    kept = Shelf(shelf, cap_bytes=1000)
    for number in range(20):
        (shelf / f"{number:02}").write_bytes(b"x" * 100)
        kept.add(f"{number:02}", 100)
    assert sorted(path.name for path in shelf.iterdir()) == [f"{n:02}" for n in range(10, 20)]


def test_import_paths_stay_inside_the_inbox() -> None:
    good = ["kit-0123456789ab.bundle", "a/b.bundle"]
    bad = ["", "/etc/x", "../x", "a/../b", "a//b", "./a", "a/", "x\0y", "a" * 2000, "x.cmd.json"]
    assert [import_path_problem(path) for path in good] == [None, None]
    assert all(import_path_problem(path) for path in bad)


def test_a_first_trust_is_given_once(live: Live) -> None:
    line = live.orders.key.public.line("me").encode()
    draft = first_trust(line, State())
    assert draft.data.keys[0].roles == ["root", "command"]  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="trust version 1 already"):
        first_trust(line, live.book.state)
