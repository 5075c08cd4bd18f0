"""Every field that somebody may write stands in the reference, with its default."""

import typing
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from thermite.schema import contract, kit

ROOT = Path(__file__).parents[2]
MANIFEST = (ROOT / "docs/reference/kit-manifest.md").read_text()
CONTRACT = (ROOT / "docs/reference/contract.md").read_text()


def structs_in(shape: object) -> Iterator[type[msgspec.Struct]]:
    """Yield a Struct and all those that its fields are made of."""
    if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        yield shape
        for hint in typing.get_type_hints(shape).values():
            yield from structs_in(hint)
    for part in typing.get_args(shape):
        yield from structs_in(part)


def names(whole: type[msgspec.Struct]) -> set[str]:
    return {
        field.encode_name
        for struct in structs_in(whole)
        for field in msgspec.structs.fields(struct)
    }


@pytest.mark.parametrize("name", sorted(names(kit.Kit)))
def test_manifest_page_has_the_field(name: str) -> None:
    assert has(MANIFEST, name)


@pytest.mark.parametrize("name", sorted(names(contract.Contract)))
def test_contract_page_has_the_field(name: str) -> None:
    assert has(CONTRACT + MANIFEST.split("## MCP servers")[1], name)


def has(page: str, name: str) -> bool:
    return any(f"{before}{name}{after}" in page for before in '`."' for after in '`[."')


@pytest.mark.parametrize("field", msgspec.structs.fields(contract.Judging), ids=lambda f: f.name)
def test_contract_page_has_judging_s_defaults(field: msgspec.structs.FieldInfo) -> None:
    row = next(
        line
        for line in CONTRACT.splitlines()
        if f"judging.{field.name}`" in line or f"`.{field.name}`" in line
    )
    if isinstance(field.default, int | float):
        assert f"{field.default:g}" in row


@pytest.mark.parametrize("section", ["build", "run", "check"])
def test_manifest_page_has_the_defaults_of_limits(section: str) -> None:
    fields = {field.name: field for field in msgspec.structs.fields(kit.Kit)}
    for field in msgspec.structs.fields(fields[section].type):
        if isinstance(field.default, int):
            assert f"| `{section}.{field.name}` | integer from 1 | {field.default} |" in MANIFEST
