"""Contracts of each kind, and ways to bend them."""

import copy
import json
from typing import Any

from thermite.schema.contract import Contract
from thermite.schema.contract_text import read_contract

COMMIT = "a" * 40
PROJECT = {"repo": "matmul", "commit": COMMIT, "kit": {"repo": "smoke-cpu", "commit": "b" * 40}}
HILL_CLIMB: dict[str, Any] = {
    "schema_version": 1,
    "name": "faster",
    "campaign": "hill_climb",
    "task": "make it faster",
    "project": PROJECT,
    "cells": ["small", "large"],
    "held_out_cells": ["held"],
    "objective": {"primary": {"metric": "flops_per_s"}},
}
GOAL: dict[str, Any] = {
    "schema_version": 1,
    "name": "right",
    "campaign": "goal",
    "task": "make it right",
    "project": PROJECT,
    "goals": [{"id": "a", "title": "A", "verify": {"type": "code", "verifier": "v"}}],
}
RESEARCH: dict[str, Any] = {
    "schema_version": 1,
    "name": "why",
    "campaign": "research",
    "task": "find out why",
    "project": {"repo": "matmul", "commit": COMMIT},
}
GONE = object()
"""In the place of a value: take the field out."""


def bent(whole: dict[str, Any], *changes: tuple[str, object]) -> dict[str, Any]:
    """Return a contract with values set at places (`judging/min_blocks`), or taken out."""
    made = copy.deepcopy(whole)
    for place, value in changes:
        *folders, last = place.split("/")
        here: Any = made
        for name in folders:
            here = here[int(name)] if isinstance(here, list) else here.setdefault(name, {})
        if value is GONE:
            del here[last]
        else:
            here[last] = value
    return made


def problems(
    whole: dict[str, Any], *changes: tuple[str, object], completed: bool = True
) -> list[str]:
    """Return the texts of a bent contract's problems."""
    found = read_contract(json.dumps(bent(whole, *changes)).encode(), completed=completed)
    return [] if isinstance(found, Contract) else [str(one) for one in found]


def contract(whole: dict[str, Any], *changes: tuple[str, object]) -> Contract:
    """Return the bent contract, which must have no problem."""
    found = read_contract(json.dumps(bent(whole, *changes)).encode())
    assert isinstance(found, Contract), [str(one) for one in found]
    return found
