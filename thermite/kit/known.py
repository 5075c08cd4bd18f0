"""Read a kit's known candidates: which there are, and what is expected of each.

Source: kit requirements, 20.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from thermite.schema.document import Document
from thermite.schema.document import Path as Place
from thermite.schema.expectation import Expectation, Instead, KnownContract
from thermite.schema.kit import Problem

CANDIDATES: Final = "candidates"
BASE: Final = "base"
MOST_BYTES: Final = 64 << 10
"""Longest expect.toml or contract.toml beside the candidates; ours have 200 bytes."""

_T = TypeVar("_T")


def known_names(kit: Path) -> list[str]:
    """Return the names of a kit's known candidates, without `base`, in their order."""
    folder = kit / CANDIDATES
    if not folder.is_dir():
        return []
    return sorted(one.name for one in folder.iterdir() if one.is_dir() and one.name != BASE)


def read_expectation(raw: bytes, names: set[str]) -> Expectation | list[Problem]:
    """Return what an expect.toml expects, or all its problems.

    Args:
        names: the other candidates' names.
    """
    return _read(raw, Expectation, lambda whole: _expectation_problems(whole, names))


def read_known_contract(raw: bytes) -> KnownContract | list[Problem]:
    """Return what the candidates are judged on, or all problems of that file."""
    return _read(raw, KnownContract, lambda _: iter(()))


def case_here(expectation: Expectation, applied: set[str]) -> Expectation | Instead | None:
    """Return the case that means something on a rig that applied these, or None: skip it."""
    cases: list[Expectation | Instead] = [expectation, *expectation.instead]
    return next((case for case in cases if set(case.needs) <= applied), None)


def _read(raw: bytes, kind: type[_T], rule: Any) -> _T | list[Problem]:  # noqa: ANN401
    if len(raw) > MOST_BYTES:
        said = f"{len(raw)} bytes, and at most {MOST_BYTES} are read"
        return [Problem(place="", text=said)]
    try:
        whole = tomllib.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError) as why:
        return [Problem(place="", text=f"is not valid TOML: {why}")]
    document = Document(null_is_absent=False)
    made = document.read(kind, whole)
    for place, text in rule(whole):
        document.refuse(place, text)
    return document.in_order(whole) if document.problems else cast("_T", made)


def _expectation_problems(whole: dict[str, Any], names: set[str]) -> Iterator[tuple[Place, str]]:
    against = whole.get("against", BASE)
    if isinstance(against, str) and against not in {BASE, "none", *names}:
        yield ("against",), f"{against} is no other candidate of this kit"
    instead = whole.get("instead")
    cases: list[tuple[Place, dict[str, Any]]] = [((), whole)]
    cases += [
        (("instead", at), one)
        for at, one in enumerate(instead if isinstance(instead, list) else [])
        if isinstance(one, dict)
    ]
    for here, case in cases:
        yield from _case_problems(case, here)


def _case_problems(case: dict[str, Any], here: Place) -> Iterator[tuple[Place, str]]:
    reason, gain, verdict = case.get("reason"), case.get("gain"), case.get("verdict")
    if isinstance(reason, str):
        try:
            re.compile(reason)
        except (re.error, RecursionError, OverflowError) as why:
            yield (*here, "reason"), f"is no regular expression: {why}"
    if gain is not None and isinstance(verdict, list) and "promoted" not in verdict:
        yield (*here, "gain"), "only a promotion has a gain: expect promoted, or take it out"
    numbers = (
        [one for one in gain if isinstance(one, int | float)] if isinstance(gain, list) else []
    )
    if len(numbers) == len(("low", "high")) and numbers[0] > numbers[1]:
        yield (*here, "gain"), f"the least, {numbers[0]}, is above the most, {numbers[1]}"
