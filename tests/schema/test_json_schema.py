"""The schemas in `schema/` are those of the Structs, and an independent validator agrees."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from tests.kit.seed import GONE, SEED, bent
from tests.kit.test_manifest import FAULTS
from tests.schema.contracts import GOAL, HILL_CLIMB, RESEARCH, contract
from thermite.schema.json_schema import SCHEMAS

ROOT = Path(__file__).parents[2]


def stored(name: str) -> dict[str, Any]:
    return dict(json.loads((ROOT / "schema" / f"{name}.schema.json").read_text()))


def fits(name: str, value: object) -> bool:
    validator = jsonschema.Draft202012Validator(stored(name))
    return bool(validator.is_valid(value))


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_stored_schema_is_the_struct_s(name: str) -> None:
    made = json.loads(json.dumps(SCHEMAS[name]()))
    assert stored(name) == made, "run PYTHONPATH=. python tools/make_schemas.py from the top folder"
    jsonschema.Draft202012Validator.check_schema(stored(name))


def test_there_is_no_stored_schema_that_nothing_makes() -> None:
    assert {one.name for one in (ROOT / "schema").glob("*.json")} == {
        f"{name}.schema.json" for name in SCHEMAS
    }


def test_every_struct_in_a_schema_is_described_and_closed() -> None:
    for name in SCHEMAS:
        for struct, shape in stored(name)["$defs"].items():
            assert shape["description"], struct
            assert shape["additionalProperties"] is False, struct


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(SEED, id="the page's own"),
        *(
            pytest.param(json.loads(path.read_text()), id=path.parent.name)
            for path in sorted(ROOT.glob("kits/*/kit.json"))
        ),
        pytest.param(bent(("cells/x", {"n": 10**30, "t": True})), id="all digits"),
        pytest.param(
            bent(
                ("metrics", {"t": {"from": "time"}, "c": {"from": "check", "field": "x"}}),
                ("verifiers", {"v": {"cells": ["small"], "requires": []}}),
                (
                    "mcp_servers",
                    [{"name": "a", "agents": ["workers"], "tools": {"workers": ["x"]}}],
                ),
            ),
            id="everything optional",
        ),
    ],
)
def test_a_manifest_that_we_take_fits_its_schema(value: dict[str, Any]) -> None:
    assert fits("kit", value)


RULES = (
    "D01", "D05", "D07", "D09", "D10", "D11", "D13", "K-014", "K-031", "K-070-twice",
    "K-072-twice", "K-062-float", "K-074", "D08", "D19", "D03-null-tools", "K-010-1.0",
)  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [pytest.param(one.values[0], id=one.id) for one in FAULTS if not str(one.id).startswith(RULES)],
)
def test_a_wrong_shape_does_not_fit_the_manifest_s_schema(change: tuple[str, object]) -> None:
    assert not fits("kit", bent(change))


@pytest.mark.parametrize("whole", [HILL_CLIMB, GOAL, RESEARCH], ids=lambda one: one["campaign"])
def test_contracts_fit_theirs_short_and_written_out(whole: dict[str, Any]) -> None:
    assert fits("contract", whole)
    assert fits("contract", msgspec.to_builtins(contract(whole)))
    assert not fits("contract", whole | {"extra": 1})
    assert not fits("contract", {key: whole[key] for key in whole if key != "task"})


def test_a_command_s_body_is_that_of_its_type() -> None:
    payload: dict[str, Any] = {
        "v": 1, "id": "a", "type": "pause_campaign", "rig": "r", "ledger": "l", "issuer": "i",
        "issued_at": "t", "not_before": "t", "expires_at": "t", "after": None,
        "body": {"assignment": "x"},
    }  # fmt: skip
    assert fits("command", payload)
    assert not fits("command", payload | {"body": {}})
    assert not fits("command", payload | {"type": "vote_review"})
    assert not fits("command", payload | {"type": "fly"})


def test_events_fit_and_nothing_else_does() -> None:
    event = {
        "type": "assignment_paused", "id": "a", "assignment": None, "lane": None, "actor": "h",
        "at": "t", "boot": "b", "mono_ns": 1, "cause": None, "command": None, "data": {"by": "k"},
    }  # fmt: skip
    assert fits("event", event)
    assert not fits("event", event | {"data": {}})
    assert not fits("event", event | {"type": "unheard_of"})
    assert GONE not in event.values()
