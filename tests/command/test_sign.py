"""Control's side: nothing leaves it that a rig could not read."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.command.orders import ALICE, BOB, fields, opened, trusted
from thermite.command.sign import sign_command
from thermite.errors import CommandError, UsageError
from thermite.schema.command import AssignBody, CommandPayload, KitBundle, SteerBody


def made(**changed: object) -> CommandPayload:
    return msgspec.convert(
        fields(**changed) | {"body": msgspec.Raw(msgspec.json.encode(changed.get("body", {})))},
        CommandPayload,
    )


def test_a_rig_opens_what_control_signs() -> None:
    raw = sign_command(made(), [ALICE, BOB])
    command = opened(raw, trust=[trusted(ALICE), trusted(BOB, roles=["command"])])
    assert len(command.signers) == 2


@given(st.text(max_size=200))
def test_any_text_arrives_as_it_was(text: str) -> None:
    body = {"assignment": "0a" * 16, "text": text, "lane": None}
    command = opened(sign_command(made(type="steer_campaign", body=body), [ALICE]))
    assert isinstance(command.body, SteerBody)
    assert command.body.text == text


def test_the_contracts_bytes_arrive_unchanged() -> None:
    contract = b'{ "b": 1.0,  "a" :[ ] }'
    body = b'{"contract":' + contract + b"}"
    payload = msgspec.structs.replace(made(type="assign_campaign"), body=msgspec.Raw(body))
    command = opened(sign_command(payload, [ALICE]))
    assert isinstance(command.body, AssignBody)
    assert bytes(command.body.contract) == contract


def test_a_payload_that_a_rig_would_refuse_is_not_signed() -> None:
    with pytest.raises(CommandError, match="expires_at"):
        sign_command(made(expires_at="tomorrow"), [ALICE])
    with pytest.raises(CommandError, match="assignment"):
        sign_command(made(type="pause_campaign"), [ALICE])


def test_the_issuers_key_must_be_there() -> None:
    with pytest.raises(RuntimeError, match="issuer"):
        sign_command(made(), [BOB])


def test_more_than_a_rig_reads_is_not_signed() -> None:
    body = {"assignment": "0a" * 16, "text": "x" * 900_000, "lane": None}
    with pytest.raises(UsageError, match="at most 1048576"):
        sign_command(made(type="steer_campaign", body=body), [ALICE])


@pytest.mark.parametrize(
    ("source", "good"),
    [
        pytest.param({"git": "https://example.com/kit.git"}, True, id="git"),
        pytest.param({"git": "https://example.com/k", "access": "deploy"}, True, id="with access"),
        pytest.param({"control": "kits/smoke-cpu"}, True, id="control"),
        pytest.param({}, False, id="nowhere"),
        pytest.param({"git": "x", "control": "kits/x"}, False, id="two places"),
        pytest.param({"control": "kits/x", "access": "deploy"}, False, id="access to control"),
        pytest.param({"svn": "x"}, False, id="unknown"),
    ],
)
def test_a_source_names_one_place(source: dict[str, str], *, good: bool) -> None:
    item = {"kind": "kit_bundle", "path": "k.bundle", "repo": "k", "commit": "0" * 40}
    body = {"contract": {}, "imports": [item | {"source": source}]}
    payload = made(type="assign_campaign", body=body)
    if not good:
        with pytest.raises(CommandError, match="source"):
            sign_command(payload, [ALICE])
        return
    found = opened(sign_command(payload, [ALICE])).body
    assert isinstance(found, AssignBody)
    assert isinstance(found.imports[0], KitBundle)
    assert msgspec.to_builtins(found.imports[0].source) == source
