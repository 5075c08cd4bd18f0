"""The rig's decision on a dropped file: each refusal with its code, in the page's order."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.command.orders import (
    ALICE,
    BOB,
    LEDGER,
    NOW,
    RIG,
    fields,
    opened,
    order,
    payload,
    trusted,
)
from tests.requirement import shows
from thermite.command.envelope import seal
from thermite.command.keyring import Keyring
from thermite.command.verify import check_times, open_command
from thermite.errors import CommandError
from thermite.schema.command import COMMAND_TYPE, RECEIPT_TYPE, NoBody, TrustedKey


def refused(raw: bytes, *, trust: Sequence[TrustedKey] = ()) -> tuple[str, str]:
    with pytest.raises(CommandError) as caught:
        opened(raw, trust=trust)
    return caught.value.code, str(caught.value)


def late(now: datetime, **changed: object) -> tuple[str, str]:
    command = opened(order(**changed))
    with pytest.raises(CommandError) as caught:
        check_times(command, now)
    return caught.value.code, str(caught.value)


def code_or_digest(raw: bytes) -> str:
    try:
        return opened(raw).digest
    except CommandError as error:
        return error.code


def sealed(raw_payload: bytes) -> bytes:
    return seal(raw_payload, COMMAND_TYPE, [ALICE])


def test_a_good_command_comes_with_its_signer_digest_and_body() -> None:
    command = opened(order())
    check_times(command, NOW)
    assert [key.id for key in command.signers] == [ALICE.public.id]
    assert command.body == NoBody()
    assert command.assignment == command.digest[:32]
    assert command.expires_at == datetime(2026, 3, 2, 12, tzinfo=UTC)


# Step 2 (the rest of it: test_envelope.py)
def test_a_file_that_is_no_envelope_is_malformed_envelope() -> None:
    assert refused(b"{}")[0] == "malformed_envelope"


# Step 3
@pytest.mark.parametrize("kind", [RECEIPT_TYPE, COMMAND_TYPE + " ", COMMAND_TYPE.upper(), ""])
def test_only_the_one_payload_type_is_a_command(kind: str) -> None:
    raw = seal(payload(), kind, [ALICE])
    assert refused(raw)[0] == "unknown_payload_type"


# Step 4
def test_a_key_that_is_not_trusted_opens_nothing() -> None:
    assert refused(order(BOB))[0] == "no_trusted_signature"


def test_a_changed_byte_of_the_payload_breaks_the_signature() -> None:
    found = json.loads(order())
    other = json.loads(order(id="0d" * 16))
    raw = json.dumps(found | {"payload": other["payload"]}).encode()
    assert refused(raw)[0] == "no_trusted_signature"


def test_a_key_id_is_only_a_hint() -> None:
    found = json.loads(order())
    found["signatures"][0]["keyid"] = BOB.public.id
    assert opened(json.dumps(found).encode()).signers[0].id == ALICE.public.id
    forged = json.loads(order(BOB))
    forged["signatures"][0]["keyid"] = ALICE.public.id
    assert refused(json.dumps(forged).encode())[0] == "no_trusted_signature"


def test_junk_beside_a_good_signature_changes_nothing() -> None:
    found = json.loads(order())
    good = found["signatures"][0]
    found["signatures"] = [{"sig": "AAAA"}, {"keyid": "", "sig": ""}, good, good]
    assert len(opened(json.dumps(found).encode()).signers) == 1


def test_nothing_of_an_unsigned_payload_is_looked_at() -> None:
    assert refused(seal(b"\xff not json", COMMAND_TYPE, [BOB]))[0] == "no_trusted_signature"


# Step 5
@shows("K1")
@pytest.mark.parametrize(
    ("changed", "said"),
    [
        pytest.param({"v": 2}, "`$.v`", id="another version"),
        pytest.param({"v": True}, "`$.v`", id="true is no version"),
        pytest.param({"type": "make_coffee"}, "`$.type`", id="no command"),
        pytest.param({"extra": 1}, "unknown field `extra`", id="unknown field"),
        pytest.param({"body": {"extra": 1}}, "unknown field `extra`", id="unknown field below"),
        pytest.param({"after": {"size": 3, "root": "", "x": 1}}, "unknown field", id="in after"),
        pytest.param({"after": {"size": 0, "root": ""}}, "after.size is 0", id="empty checkpoint"),
        pytest.param({"after": {"size": 2**53, "root": ""}}, "2^53 - 1", id="huge integer"),
        pytest.param({"after": {"size": -(2**63), "root": ""}}, "2^53 - 1", id="huge negative"),
        pytest.param({"id": "0C" * 16}, "id is not 32", id="upper-case id"),
        pytest.param({"id": "0c" * 8}, "id is not 32", id="short id"),
        pytest.param({"rig": "٣" * 32}, "rig is not 32", id="digits of another script"),
        pytest.param({"ledger": "b2" * 16 + "\n"}, "ledger is not 32", id="line end"),
        pytest.param({"issuer": ""}, "issuer is not 32", id="empty issuer"),
        pytest.param({"issued_at": "2026-03-01T12:00:00"}, "issued_at", id="local time"),
        pytest.param({"issued_at": "2026-03-01T12:00:00+01:00"}, "issued_at", id="offset"),
        pytest.param({"issued_at": "2026-03-01t12:00:00z"}, "issued_at", id="lower case"),
        pytest.param({"not_before": "2026-03-01T12:00:60Z"}, "not_before", id="second 60"),
        pytest.param({"not_before": "2026-02-29T12:00:00Z"}, "not_before", id="29 February"),
        pytest.param({"expires_at": "10000-01-01T00:00:00Z"}, "expires_at", id="year 10000"),
        pytest.param({"expires_at": "0000-01-01T00:00:00Z"}, "expires_at", id="year 0"),
        pytest.param({"expires_at": 1772366400}, "`$.expires_at`", id="seconds since 1970"),
        pytest.param({"expires_at": "2026-03-01T11:59:59Z"}, "before issued_at", id="ends first"),
        pytest.param({"not_before": "2026-03-03T00:00:00Z"}, "before not_before", id="never valid"),
    ],
)
def test_a_payload_that_is_not_as_the_page_says_is_refused(
    changed: dict[str, Any], said: str
) -> None:
    code, text = refused(sealed(payload(**changed)))
    assert code == "malformed_payload"
    assert said in text


@pytest.mark.parametrize("name", sorted(fields()))
def test_every_field_is_required(name: str) -> None:
    left = {key: value for key, value in fields().items() if key != name}
    assert refused(sealed(json.dumps(left).encode()))[0] == "malformed_payload"


@pytest.mark.parametrize(
    "again",
    [
        pytest.param(b',"rig":"' + RIG.encode() + b'"}', id="plainly"),
        pytest.param(b',"r\\u0069g":"' + RIG.encode() + b'"}', id="escaped"),
        pytest.param(b',"x":{"a":1,"\\u0061":2}}', id="below"),
    ],
)
def test_a_name_that_stands_twice_is_refused(again: bytes) -> None:
    code, text = refused(sealed(payload()[:-1] + again))
    assert code == "malformed_payload"
    assert "twice" in text


def test_a_name_that_stands_twice_in_a_body_is_refused() -> None:
    raw = payload(body={"contract": {}}).replace(b'"contract": {}', b'"a": 1, "\\u0061": 2')
    assert "twice" in refused(sealed(raw))[1]


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"null", id="null"),
        pytest.param(payload() + payload(), id="two"),
        pytest.param(payload().replace(b"null", b"NaN"), id="NaN"),
        pytest.param(payload().replace(b"null", b"[" * 5000 + b"]" * 5000), id="depth bomb"),
        pytest.param(payload().replace(b"null", b"1" * 5000), id="5,000 digits"),
        pytest.param(payload().replace(b"a1a1", b"\\ud800", 1), id="half a surrogate pair"),
    ],
)
def test_odd_json_under_a_good_signature_is_refused_in_words(raw: bytes) -> None:
    assert refused(sealed(raw))[0] == "malformed_payload"


# Step 6
@pytest.mark.parametrize(
    ("rights", "code"),
    [
        pytest.param({"revoked_since": "2026-02-01T00:00:00Z"}, "key_revoked", id="revoked"),
        pytest.param({"revoked_since": "2027-02-01T00:00:00Z"}, "key_revoked", id="from later on"),
        pytest.param({"until": "2026-03-01T12:00:00Z"}, "key_expired", id="expired"),
        pytest.param({"from_": "2026-03-01T12:00:01Z"}, "key_not_allowed", id="not yet"),
        pytest.param({"roles": ["root"]}, "key_not_allowed", id="root only"),
        pytest.param({"types": ["stop_campaign"]}, "key_not_allowed", id="other types"),
        pytest.param({"types": []}, "key_not_allowed", id="no types"),
    ],
)
def test_a_trusted_key_needs_the_right(rights: dict[str, Any], code: str) -> None:
    assert refused(order(), trust=[trusted(ALICE, **rights)])[0] == code


def test_a_key_within_its_time_and_types_is_enough() -> None:
    rights = {"from_": "2026-03-01T12:00:00Z", "until": "2026-03-01T12:00:01Z"}
    key = trusted(ALICE, types=["checkpoint_now"], **rights)
    assert opened(order(), trust=[key]).signers == (key,)


def test_only_the_root_changes_trust() -> None:
    body = {"key": ALICE.public.id, "since": "2026-03-01T00:00:00Z"}
    raw = order(type="revoke_key", body=body)
    code, text = refused(raw, trust=[trusted(ALICE, roles=["command"])])
    assert code == "key_not_allowed"
    assert "root" in text
    root = trusted(ALICE, roles=["root"])
    assert opened(raw, trust=[root]).signers == (root,)


def test_the_issuer_is_one_of_the_signers() -> None:
    trust = [trusted(ALICE), trusted(BOB, roles=["command"])]
    assert refused(order(BOB), trust=trust)[0] == "issuer_did_not_sign"
    assert refused(order(issuer="ff" * 16), trust=trust)[0] == "issuer_did_not_sign"


def test_a_revoked_issuer_is_not_covered_by_another_signer() -> None:
    revoked = trusted(ALICE, revoked_since="2026-01-01T00:00:00Z")
    trust = [revoked, trusted(BOB, roles=["command"])]
    assert refused(order(ALICE, BOB), trust=trust)[0] == "key_revoked"


def test_a_revoked_second_signer_does_not_count() -> None:
    revoked = trusted(BOB, roles=["command"], revoked_since="2026-01-01T00:00:00Z")
    command = opened(order(ALICE, BOB), trust=[trusted(ALICE), revoked])
    assert [key.id for key in command.signers] == [ALICE.public.id]


# Step 7
def test_a_command_for_another_rig_says_both_rigs_and_what_to_do() -> None:
    code, text = refused(order(rig="c3" * 16))
    assert code == "wrong_rig"
    assert text == (
        f"this command is for rig {'c3' * 16}, and this rig is {RIG}:"
        f" sign it again with --rig {RIG}"
    )


def test_a_command_for_another_ledger_is_refused() -> None:
    code, text = refused(order(ledger="c3" * 16))
    assert code == "wrong_ledger"
    assert LEDGER in text


def test_the_order_of_the_steps_is_the_pages() -> None:
    everything = {"rig": "c3" * 16, "ledger": "c3" * 16, "expires_at": "x", "issuer": "ff" * 16}
    assert refused(order(BOB, **everything))[0] == "no_trusted_signature"
    assert refused(order(**everything))[0] == "malformed_payload"
    del everything["expires_at"]
    assert refused(order(**everything))[0] == "issuer_did_not_sign"
    del everything["issuer"]
    assert refused(order(**everything))[0] == "wrong_rig"


# Step 10
@shows("K1")
@pytest.mark.parametrize(
    "ahead",
    [
        pytest.param(timedelta(seconds=2), id="2 s"),
        pytest.param(timedelta(minutes=4), id="4 min"),
        pytest.param(timedelta(minutes=5), id="5 min"),
    ],
)
def test_a_small_difference_of_clocks_is_accepted_both_ways(ahead: timedelta) -> None:
    command = opened(order())
    check_times(command, command.not_before - ahead)
    check_times(command, command.expires_at + ahead - timedelta(microseconds=1))


@shows("K1")
def test_too_early_and_too_late_name_both_clocks_and_the_difference() -> None:
    code, text = late(NOW - timedelta(days=1))
    assert code == "not_yet_valid"
    assert "2026-03-01T12:00:00Z" in text
    assert "2026-02-28T12:00:00Z" in text
    assert "1 d earlier" in text
    code, text = late(NOW + timedelta(days=2, hours=3, minutes=2))
    assert code == "expired"
    assert "2026-03-02T12:00:00Z" in text
    assert "2026-03-03T15:02:00Z" in text
    assert "1 d 3 h later" in text


def test_the_first_moments_outside_the_window_are_refused() -> None:
    assert late(NOW - timedelta(minutes=5, microseconds=1))[0] == "not_yet_valid"
    assert late(NOW + timedelta(days=1, minutes=5))[0] == "expired"


@shows("K1")
def test_expiry_at_the_time_of_issue_is_valid_for_the_skew_only() -> None:
    at_once = {"expires_at": "2026-03-01T12:00:00Z"}
    check_times(opened(order(**at_once)), NOW)
    assert late(NOW + timedelta(minutes=5), **at_once)[0] == "expired"


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"expires_at": "2026-03-08T12:00:01Z"}, id="7 days and a second"),
        pytest.param({"issued_at": "2026-02-01T00:00:00Z"}, id="issued long ago"),
        pytest.param(
            {"issued_at": "2030-01-01T00:00:00Z", "expires_at": "2030-01-02T00:00:00Z"},
            id="issued in the future, valid now",
        ),
    ],
)
def test_a_command_is_never_valid_for_more_than_7_days(changed: dict[str, Any]) -> None:
    code, text = late(NOW, **changed)
    assert code == "window_too_long"
    assert "7 d" in text


def test_seven_days_to_the_second_are_allowed() -> None:
    check_times(opened(order(expires_at="2026-03-08T12:00:00Z")), NOW)


# Step 12
def test_a_body_of_another_shape_is_malformed_body_and_only_when_asked() -> None:
    command = opened(order(type="stop_campaign", body={"now": True}))
    with pytest.raises(CommandError, match="assignment") as caught:
        _ = command.body
    assert caught.value.code == "malformed_body"


@given(st.integers(min_value=0), st.integers(min_value=1, max_value=255))
def test_any_changed_byte_of_a_signed_file_is_refused_or_means_the_same(at: int, by: int) -> None:
    raw = order()
    at %= len(raw)
    changed = raw[:at] + bytes([raw[at] ^ by]) + raw[at + 1 :]
    assert code_or_digest(changed) in {
        "malformed_envelope",
        "unknown_payload_type",
        "no_trusted_signature",
        opened(raw).digest,
    }


@pytest.mark.parametrize("padding", [0, 9000], ids=["small", "large"])
def test_bytes_that_were_opened_before_are_judged_anew(padding: int) -> None:
    raw = order().rstrip(b"\n") + b" " * padding
    keyring = Keyring([trusted(ALICE, until="2026-03-01T13:00:00Z")])

    def code(keyring: Keyring, now: datetime = NOW, rig: str = RIG) -> str | None:
        try:
            open_command(raw, keyring, rig=rig, ledger=LEDGER, now=now)
        except CommandError as error:
            return error.code
        return None

    assert [code(keyring), code(keyring)] == [None, None]
    assert code(keyring, now=NOW + timedelta(hours=1)) == "key_expired"
    assert code(keyring, rig="c3" * 16) == "wrong_rig"
    assert code(Keyring([trusted(BOB)])) == "no_trusted_signature"
    revoked = trusted(ALICE, revoked_since="2026-01-01T00:00:00Z")
    assert code(Keyring([revoked])) == "key_revoked"
