"""Fill in the placeholders of run.command and check.command, and write a cell's parameters.

Source: the reference page "Kit manifest", Placeholders; kit requirements D23 to D28.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from thermite.errors import InfrastructureError
from thermite.schema.kit import Cell

NAMES: Final = frozenset({"build", "params", "params_json", "out", "kit", "models"})
"""Every placeholder of this version."""

_PLACEHOLDER: Final = re.compile(r"\{([a-z][a-z0-9_]*)(?::([^{}]*))?\}")


class Placeholder(NamedTuple):
    """One placeholder in an argument: its name, its sub path (empty: none), as it is written."""

    name: str
    below: str
    written: str


def placeholders(args: Iterable[str]) -> Iterator[Placeholder]:
    """Yield every placeholder in the arguments, from the left."""
    for arg in args:
        for found in _PLACEHOLDER.finditer(arg):
            yield Placeholder(found[1], found[2] or "", found[0])


def leaves_its_folder(below: str) -> bool:
    """Return whether a sub path is absolute or has a `..` part."""
    return below.startswith("/") or ".." in below.split("/")


def expand(args: Iterable[str], places: Mapping[str, Path]) -> list[str]:
    """Return the arguments with each placeholder replaced by its path; one pass, no escapes.

    Raises:
        InfrastructureError: a placeholder is unknown, or its sub path leaves its folder; the
            kit's fault, never the candidate's.
    """

    def filled(found: re.Match[str]) -> str:
        name, below = found[1], found[2] or ""
        if name not in places:
            raise InfrastructureError(f"unknown placeholder {{{name}}}")
        if leaves_its_folder(below):
            raise InfrastructureError(f"placeholder {found[0]} leaves its folder")
        return f"{places[name]}/{below}" if below else str(places[name])

    return [_PLACEHOLDER.sub(filled, arg) for arg in args]


def params_text(cell: Cell) -> bytes:
    """Return `params.txt`: one `key=value` line each, in the kit's order."""
    return "".join(f"{name}={_plain(value)}\n" for name, value in cell.items()).encode()


def params_json(cell: Cell) -> bytes:
    """Return `params.json`: one compact JSON object, in the kit's order."""
    return json.dumps(cell, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _plain(value: float | str | bool) -> str:  # noqa: FBT001 (a cell's value, not a switch)
    return value if isinstance(value, str) else json.dumps(value, allow_nan=False)
