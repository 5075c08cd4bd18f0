"""Another rule for the same blocks: `--set NAME=VALUE`, checked before a ledger is opened.

A value must be one that a contract could have, so that what comes of it says something of the
rule, and a value that makes no rule is its giver's fault and never the ledger's.
"""

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from thermite.errors import UsageError
from thermite.schema.contract import Judging, Objective
from thermite.schema.contract_rules import bound_problems
from thermite.schema.rule import RuleParameters
from thermite.schema.strict_json import NotStrictJson, read

SHOWN: Final = 60
"""Characters of a refused change that a message repeats."""
MOST_BYTES: Final = 64 << 10
"""Longest value that is read; the weights of 64 cells have 5 kB."""
MOST_LEVELS: Final = 2
"""Weights are an object of numbers, and nothing is deeper."""
MOST_WHOLE: Final = 2**53 - 1
"""The largest whole number that every reader of JSON takes as it is (RFC 8259, 6)."""
_OBJECTIVE: Final = ("min_effect", "weights")
TYPES: Final[Mapping[str, Any]] = {
    **{
        f"objective.{f.name}": f.type
        for f in msgspec.structs.fields(Objective)
        if f.name in _OBJECTIVE
    },
    **{f"judging.{f.name}": f.type for f in msgspec.structs.fields(Judging)},
}
"""What may be changed, by its name in a contract, and the values that it may have there."""


def read_changes(texts: Sequence[str]) -> dict[str, object]:
    """Return changes written as `objective.min_effect=0.01`; values are JSON.

    Raises:
        UsageError: not of that form, twice the same, no parameter of the rule, or a value that
            no contract can have.
    """
    changes: dict[str, object] = {}
    for text in texts:
        name, _, value = text.partition("=")
        try:
            found = read(value.encode(), most_bytes=MOST_BYTES, most_levels=MOST_LEVELS)
        except (NotStrictJson, UnicodeEncodeError):
            raise UsageError(
                f"{_shown(text)} is no change: write a name and a JSON value, as"
                " objective.min_effect=0.01"
            ) from None
        if name in changes:
            raise UsageError(f"{name} is changed twice: give it once")
        changes[name] = _value(name, found)
    return changes


def changed(p: RuleParameters, changes: Mapping[str, object]) -> RuleParameters:
    """Return the parameters of another rule.

    Raises:
        UsageError: the cells have other names than the weights, or a bound lies beyond its other.
    """
    judging = msgspec.to_builtins(p.judging)
    own: dict[str, Any] = {}
    for name, value in changes.items():
        part, _, field = name.partition(".")
        (own if part == "objective" else judging)[field] = value
    problems = [text for _, text in bound_problems({"judging": judging})]
    if problems:
        raise UsageError(f"this is no rule: {'; '.join(problems)}")
    if "weights" in own:
        own["weights"] = _sum_1(p, own["weights"])
    return msgspec.structs.replace(p, judging=msgspec.convert(judging, Judging), **own)


def _value(name: str, found: object) -> object:
    if name not in TYPES:
        near = [one for one in TYPES if one.endswith(f".{name}")]
        near = near or get_close_matches(name, TYPES, n=1, cutoff=0.8)
        meant = f"did you mean {near[0]}?" if near else f"change one of {', '.join(TYPES)}"
        raise UsageError(f"{_shown(name)} is no parameter of the rule: {meant}")
    try:
        value: object = msgspec.convert(found, TYPES[name])
    except msgspec.ValidationError as error:
        raise UsageError(f"{name}={_shown(str(found))} is no rule: {error}") from None
    if value is None and name.startswith("objective."):
        raise UsageError(f"{name}=null is no rule: give a value")
    if not all(map(_is_usable, value.values() if isinstance(value, dict) else [value])):
        raise UsageError(f"{name}={_shown(str(found))} is no rule: a number is too large")
    return value


def _is_usable(value: object) -> bool:
    if isinstance(value, int):
        return value <= MOST_WHOLE
    return not isinstance(value, float) or math.isfinite(value)


def _sum_1(p: RuleParameters, given: Mapping[str, float]) -> dict[str, float]:
    """Return weights of all cells whose sum is 1, as the rule has them."""
    for cell in given:
        if cell not in p.cells:
            raise UsageError(
                f"objective.weights names cell {_shown(cell)}: the cells are {', '.join(p.cells)}"
            )
    raw = {cell: given.get(cell, 1.0) for cell in p.cells}
    total = math.fsum(raw.values())
    return {cell: weight / total for cell, weight in raw.items()}


def _shown(text: str) -> str:
    return ascii(text if len(text) <= SHOWN else f"{text[:SHOWN]}...")
