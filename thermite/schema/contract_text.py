"""Read a contract: a `Contract`, or everything that is wrong with it.

Source: the design page on the contract; judging, 3.3.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from thermite.schema.contract import Budget, Contract, Judging
from thermite.schema.contract_rules import evidence_problems, whole_problems
from thermite.schema.document import Document
from thermite.schema.kit import Problem
from thermite.schema.strict_json import NotStrictJson, read
from thermite.schema.strict_toml import NotToml, read_toml

MOST_BYTES: Final = 128 << 10
"""Longest contract (the design page on the contract)."""
MOST_LEVELS: Final = 29
"""Deepest contract: a command's payload has at most 32 levels and holds it at its third."""


def read_contract(raw: bytes, *, completed: bool = True) -> Contract | list[Problem]:
    """Return the contract of JSON bytes, or all its problems in the document's order.

    Args:
        completed: whether commits must be full ids and the kit be named, as in what is signed.
    """
    try:
        whole = read(raw, most_bytes=MOST_BYTES, most_levels=MOST_LEVELS)
    except NotStrictJson as why:
        return [Problem(place="", text=f"the contract is not valid JSON: {why}")]
    return contract_of(whole, completed=completed)


def read_toml_contract(raw: bytes, *, completed: bool = False) -> Contract | list[Problem]:
    """Return the contract of TOML bytes, or all its problems in the document's order."""
    if len(raw) > MOST_BYTES:
        said = f"the contract has {len(raw)} bytes, and at most {MOST_BYTES} are read"
        return [Problem(place="", text=said)]
    try:
        whole = read_toml(raw, most_levels=MOST_LEVELS)
    except NotToml as why:
        return [Problem(place="", text=f"the contract is not valid TOML: {why}")]
    return contract_of(whole, completed=completed)


def contract_of(whole: object, *, completed: bool) -> Contract | list[Problem]:
    """Return the contract of a decoded document, or all its problems in its order."""
    if not isinstance(whole, dict):
        return [Problem(place="", text="the contract needs to be one object")]
    document = Document(null_is_absent=True)
    contract = document.read(Contract, whole)
    for place, text in whole_problems(whole, completed=completed):
        document.refuse(place, text)
    if whole.get("campaign") == "hill_climb":
        _check_evidence(document, whole)
    return document.in_order(whole) if document.problems else cast("Contract", contract)


def _check_evidence(document: Document, whole: Mapping[str, Any]) -> None:
    """Note stages that can never pass, if what they are made of can be read."""
    apart = Document(null_is_absent=True)
    judging = apart.read(Judging, whole.get("judging", {}))
    budget = apart.read(Budget, whole.get("budget", {}))
    if isinstance(judging, Judging) and isinstance(budget, Budget):
        for place, text in evidence_problems(judging, budget.attempts):
            document.refuse(place, text)
