"""DSSE: the standard's vectors, strictness, and another implementation's word."""

import base64
import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from securesystemslib.dsse import Envelope as TheirEnvelope
from securesystemslib.signer._key import Key

from tests.command.orders import ALICE, BOB
from thermite.command.envelope import digest, pae, read_envelope, seal
from thermite.errors import CommandError


def file(**changed: object) -> bytes:
    good = {
        "payloadType": "t",
        "payload": "aGVsbG8=",
        "signatures": [{"keyid": "hint", "sig": "AAAA"}],
    }
    return json.dumps({k: v for k, v in (good | changed).items() if v is not ...}).encode()


def refusal(raw: bytes) -> str:
    with pytest.raises(CommandError) as caught:
        read_envelope(raw)
    assert caught.value.code == "malformed_envelope"
    return str(caught.value)


def test_signed_bytes_are_those_of_the_standards_vector() -> None:
    # DSSE protocol page, "Test vectors".
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_lengths_are_counted_in_bytes() -> None:
    assert pae("é", "ü".encode()) == b"DSSEv1 2 \xc3\xa9 2 \xc3\xbc"


def test_digest_is_of_the_decoded_payload() -> None:
    assert digest(b"hello world") == (
        "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"
    )


@given(st.binary(max_size=300), st.text(min_size=1, max_size=40))
def test_reading_gives_back_what_was_sealed(payload: bytes, kind: str) -> None:
    envelope = read_envelope(seal(payload, kind, [ALICE, BOB]))
    assert (envelope.payload, envelope.payload_type) == (payload, kind)
    assert envelope.is_signed_by(ALICE.public)
    assert envelope.is_signed_by(BOB.public)


def test_another_implementation_verifies_our_envelope() -> None:
    raw = seal(b'{"a":1}', "application/x", [ALICE])
    public = {
        "keytype": "ed25519",
        "scheme": "ed25519",
        "keyval": {"public": ALICE.public.raw.hex()},
    }
    key = Key.from_dict(ALICE.public.id, public)
    theirs = TheirEnvelope.from_dict(json.loads(raw))
    assert theirs.verify([key], 1)
    assert theirs.payload == b'{"a":1}'


def test_we_verify_another_implementations_envelope() -> None:
    signed = ALICE.sign(TheirEnvelope(b"x y", "application/x", {}).pae())
    raw = file(
        payloadType="application/x",
        payload=base64.b64encode(b"x y").decode(),
        signatures=[{"sig": base64.b64encode(signed).decode()}],
    )
    assert read_envelope(raw).is_signed_by(ALICE.public)


def test_the_payloads_type_is_part_of_what_is_signed() -> None:
    found = json.loads(seal(b"x", "application/a", [ALICE]))
    raw = json.dumps(found | {"payloadType": "application/b"}).encode()
    assert not read_envelope(raw).is_signed_by(ALICE.public)


def test_unknown_envelope_fields_are_ignored() -> None:
    signatures = [{"sig": "AAAA", "cert": "x"}]
    assert read_envelope(file(later=[1], signatures=signatures)).signatures == (b"\0\0\0",)


def test_url_safe_base64_reads_the_same() -> None:
    assert (
        read_envelope(file(payload="-_-_")).payload == read_envelope(file(payload="+/+/")).payload
    )


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(file()[:-9], "", id="truncated"),
        pytest.param(b"[]", "no JSON object", id="a list"),
        pytest.param(b"\xef\xbb\xbf" + file(), "byte-order mark", id="byte-order mark"),
        pytest.param(file() + b"{}", "more than one value", id="two values"),
        pytest.param(b"\xff" + file(), "not UTF-8", id="not UTF-8"),
        pytest.param(b"x" * ((1 << 20) + 1), "at most 1048576", id="over 1 MiB"),
        pytest.param(b"[" * 100_000, "", id="depth bomb"),
        pytest.param(b'{"a":' * 40 + b"1" + b"}" * 40, "32 levels", id="40 levels"),
        pytest.param(file(payload=...), "payload is missing", id="no payload"),
        pytest.param(file(payloadType=...), "payloadType is missing", id="no type"),
        pytest.param(file(payloadType=7), "payloadType is no text", id="type is a number"),
        pytest.param(file(signatures=...), "signatures is no list", id="no signatures"),
        pytest.param(file(signatures=[]), "signatures is no list", id="unsigned"),
        pytest.param(file(signatures=[{"sig": "AAAA"}] * 9), "1 to 8", id="nine signatures"),
        pytest.param(file(signatures=["AAAA"]), "signatures[0] is no object", id="bare text"),
        pytest.param(file(signatures=[{"keyid": "x"}]), "sig is missing", id="no sig"),
        pytest.param(file(signatures=[{"keyid": 1, "sig": ""}]), "keyid is no text", id="keyid"),
        pytest.param(file(signatures=[{"sig": "A"}]), "signatures[0].sig is not base64", id="sig"),
        pytest.param(file(payload="aGVsbG8"), "not base64", id="no padding"),
        pytest.param(file(payload="aGVsbG8=\n"), "not base64", id="line end"),
        pytest.param(file(payload="aGVsbG9="), "one form", id="bits left over"),
        pytest.param(file(payload="+/-_"), "not base64", id="two alphabets"),
        pytest.param(b'{"payload":"","p\\u0061yload":""}', "stands twice", id="escaped duplicate"),
    ],
)
def test_what_two_readers_could_read_differently_is_refused(raw: bytes, said: str) -> None:
    assert said in refusal(raw)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_in_words(raw: bytes) -> None:
    with contextlib.suppress(CommandError):
        read_envelope(raw)
