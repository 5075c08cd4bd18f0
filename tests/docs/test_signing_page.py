"""The page on commands and signing has every field, type and code that the code has."""

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from thermite.schema.command import BODY_OF, CommandPayload, CommandType, Outcome, Receipt

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/commands-and-signing.md").read_text()
RAISED = re.compile(r'CommandError\(\s*"([a-z_]+)"|return "([a-z_]+)", ')
CODES = sorted(
    {
        code
        for room in ("thermite/command", "thermite/harness", "thermite/kit", "supervisor")
        for path in (ROOT / room).rglob("*.py")
        for found in RAISED.finditer(path.read_text())
        for code in found.groups()
        if code
    }
)


def test_the_codes_are_found_in_the_code() -> None:
    assert {"wrong_rig", "key_revoked", "malformed_envelope"} <= set(CODES)


@pytest.mark.parametrize("code", CODES)
def test_every_refusal_code_stands_on_the_page(code: str) -> None:
    assert f"`{code}`" in PAGE


@pytest.mark.parametrize("kind", get_args(CommandType))
def test_every_command_and_the_fields_of_its_body_stand_on_the_page(kind: str) -> None:
    row = next(line for line in PAGE.splitlines() if re.match(rf"\| .*`{kind}`.* \|", line))
    for field in msgspec.structs.fields(BODY_OF[kind]):
        assert f"`{field.encode_name}`" in row


@pytest.mark.parametrize("shape", [CommandPayload, Receipt])
def test_every_field_of_payload_and_receipt_stands_on_the_page(
    shape: type[msgspec.Struct],
) -> None:
    for field in msgspec.structs.fields(shape):
        assert f"`{field.encode_name}`" in PAGE
    assert all(f"`{outcome}`" in PAGE for outcome in get_args(Outcome))
