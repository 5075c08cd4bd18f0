"""TOML as control writes it: tables of texts, numbers, truths and lists of texts."""

import json
import re
from collections.abc import Mapping
from typing import Final, TypeAlias

Value: TypeAlias = str | int | float | bool | list[str]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def table(name: tuple[str, ...], fields: Mapping[str, Value | None]) -> str:
    """Return one `[table]` with its fields; those that are None are left out."""
    head = ".".join(_key(part) for part in name)
    lines = [f"{_key(key)} = {value(v)}" for key, v in fields.items() if v is not None]
    return "\n".join([f"[{head}]", *lines, ""])


def value(given: Value) -> str:
    """Return a value in TOML."""
    if isinstance(given, list):
        return f"[{', '.join(value(item) for item in given)}]"
    if isinstance(given, str):
        return text(given)
    return json.dumps(given)


def text(given: str) -> str:
    """Return a text as a TOML basic string, which JSON's is but for DEL (TOML 1.0, String)."""
    return json.dumps(given, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else text(name)
