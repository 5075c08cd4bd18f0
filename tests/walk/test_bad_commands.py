"""Bad commands at a served rig: refused in words, moved aside, and nothing half-applied."""

import base64
import json
import shutil

from tests.orders import at
from tests.served import ServedRig
from tests.walk.served_orders import ServedOrders
from thermite.command.signing_key import SigningKey


def test_an_unsigned_command_is_refused(orders: ServedOrders) -> None:
    envelope = json.loads(orders.command())
    envelope["signatures"] = []
    reason = orders.refused(json.dumps(envelope).encode())
    assert reason["code"] == "malformed_envelope"
    plain = orders.refused(orders.payload())
    assert plain["code"] == "malformed_envelope"


def test_a_strangers_signature_is_no_signature(orders: ServedOrders) -> None:
    reason = orders.refused(orders.sealed(orders.payload(), SigningKey.generate()))
    assert reason["code"] == "no_trusted_signature"


def test_one_changed_byte_is_no_signature(orders: ServedOrders) -> None:
    envelope = json.loads(orders.command())
    payload = bytearray(base64.b64decode(envelope["payload"]))
    payload[-2] ^= 1
    envelope["payload"] = base64.b64encode(payload).decode()
    assert orders.refused(json.dumps(envelope).encode())["code"] == "no_trusted_signature"


def test_a_command_for_another_rig_names_both(orders: ServedOrders) -> None:
    reason = orders.refused(orders.command(rig="a" * 32))
    assert reason["code"] == "wrong_rig"
    assert "a" * 32 in reason["message"]
    assert orders.rig in reason["message"]
    assert orders.refused(orders.command(ledger="b" * 32))["code"] == "wrong_ledger"


def test_an_expired_command_names_both_clocks(orders: ServedOrders) -> None:
    reason = orders.refused(
        orders.command(issued_at=at(-60), not_before=at(-60), expires_at=at(-10))
    )
    assert reason["code"] == "expired"


def test_a_command_may_not_last_longer_than_a_week(orders: ServedOrders) -> None:
    reason = orders.refused(orders.command(expires_at=at(60 * 24 * 8)))
    assert reason["code"] == "window_too_long"


def test_keys_that_stand_twice_are_refused_though_they_are_signed(orders: ServedOrders) -> None:
    payload = orders.payload()
    twice = payload.replace(b'"v":1', b'"v":1,"v":1')
    assert twice != payload
    reason = orders.refused(orders.sealed(twice))
    assert reason["code"] == "malformed_payload"
    deep = payload.replace(b'"body":{}', b'"body":{"a":1,"\\u0061":2}')
    assert deep != payload
    assert orders.refused(orders.sealed(deep))["code"] == "malformed_payload"


def test_a_truncated_command_is_refused_once_it_has_settled(orders: ServedOrders) -> None:
    raw = orders.command()
    assert orders.refused(raw[: len(raw) // 2])["code"] == "malformed_envelope"


def test_an_oversized_command_is_refused_unread(orders: ServedOrders) -> None:
    reason = orders.refused(orders.command() + b" " * (1 << 20))
    assert reason["code"] == "too_large"


def test_a_replayed_file_gets_its_first_receipt(rig: ServedRig, orders: ServedOrders) -> None:
    raw = orders.command()
    outbox, done = rig.state_folder / "outbox", rig.state_folder / "inbox" / "done"
    first = orders.drop(raw)
    rig.until(lambda: list(outbox.glob("*.accepted.receipt.json")))  # the last thing done
    assert list(done.glob(f"*-{first.name}"))
    receipts = {path: path.read_bytes() for path in outbox.glob("*.accepted.receipt.json")}
    size = rig.size
    again = orders.drop(raw, "another-name.cmd.json")
    rig.until(lambda: list(done.glob(f"*-{again.name}")))
    shutil.rmtree(done)
    done.mkdir()
    third = orders.drop(raw, "third.cmd.json")
    rig.until(lambda: list(done.glob(f"*-{third.name}")))
    assert {path: path.read_bytes() for path in outbox.glob("*.accepted.receipt.json")} == receipts
    assert rig.size == size
    assert [event.data.type for event in rig.events if hasattr(event.data, "issuer")] == [
        "checkpoint_now"
    ]


def test_a_rig_still_serves_after_all_that(rig: ServedRig) -> None:
    told = rig.told("receipts", "checkpoint", "--rig", "bench")
    assert told["size"] <= rig.size
    assert not rig.state.assignments
    assert list((rig.state_folder / "inbox" / "new").iterdir()) == []
    assert rig.exit_codes() == []
