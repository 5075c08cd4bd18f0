"""Law: one change of a valid manifest means what it says, or is refused at the changed place."""

import copy
import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tests.kit.seed import SEED
from thermite.kit.manifest import read_manifest
from thermite.schema.kit import Kit

WHOLE: dict[str, Any] = SEED | {
    "verifiers": {"v": {"cells": ["small"], "requires": ["w"]}, "w": {"cells": ["held"]}},
    "mcp_servers": [{"name": "s", "agents": ["workers"], "tools": {"workers": ["look"]}}],
    "metrics": {
        "flops_per_s": {"unit": "FLOP/s", "work": "work"},
        "t": {"from": "time", "unit": "s"},
        "acc": {"from": "check", "field": "accuracy", "unit": ""},
    },
    "run": SEED["run"] | {"copy": ["data"], "command": ["{build:out/bench}", "{kit:data/x}"]},
}
ORIGINAL = read_manifest(json.dumps(WHOLE).encode())

junk = st.one_of(
    st.sampled_from([None, True, False, 0, 1, -1, 2**53, 1.5, "", "x", "..", "a\n", "{kit:y}"]),
    st.sampled_from([[], {}, [1], [""], ["../a"], {"x": 1}, {"": {}}, [{}], {"from": "check"}]),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)


def places(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of everything inside a document."""
    inner = (
        list(value.items()) if isinstance(value, dict)
        else list(enumerate(value)) if isinstance(value, list) else []
    )  # fmt: skip
    found: list[tuple[str | int, ...]] = []
    for name, one in inner:
        found += [(*path, name), *places(one, (*path, name))]
    return found


def bent(path: tuple[str | int, ...], kind: str, value: object) -> dict[str, Any]:
    whole = copy.deepcopy(WHOLE)
    here: Any = whole
    for name in path[:-1]:
        here = here[name]
    if kind == "take out":
        del here[path[-1]]
    elif kind == "add" and isinstance(here, dict):
        here["unheard_of"] = value
    else:
        here[path[-1]] = value
    return whole


@given(
    st.sampled_from(places(WHOLE)), st.sampled_from(["set", "take out", "add"]), junk
)  # fmt: skip
def test_one_change_means_what_it_says_or_is_refused_where_it_is(
    path: tuple[str | int, ...], kind: str, value: object
) -> None:
    whole = bent(path, kind, value)
    found = read_manifest(json.dumps(whole).encode())
    names = [part for part in path if isinstance(part, str)]
    if kind == "add":
        names.append("unheard_of")
    if not isinstance(found, Kit):
        said = " ".join(str(one) for one in found)
        assert any(name in said for name in names)
        assert said.isprintable()
        return
    assert isinstance(ORIGINAL, Kit)
    before, after = msgspec.to_builtins(ORIGINAL), msgspec.to_builtins(found)
    assert {name: after[name] for name in after if name != path[0]} == {
        name: before[name] for name in before if name != path[0]
    }
    if whole == WHOLE:
        assert found == ORIGINAL


@given(
    st.binary(max_size=200), st.integers(0, 10**6), st.sampled_from(["insert", "replace", "cut"])
)
def test_any_bytes_are_read_or_refused_in_words(junk_bytes: bytes, at: int, how: str) -> None:
    raw = json.dumps(WHOLE).encode()
    at %= len(raw)
    rest = raw[at:] if how == "insert" else raw[at + len(junk_bytes) :] if how == "replace" else b""
    found = read_manifest(raw[:at] + junk_bytes + rest)
    if not isinstance(found, Kit):
        assert found
        assert all(str(one).isprintable() for one in found)
