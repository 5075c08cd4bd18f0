"""The numbers that a kit's check printed, as decimal text: what the ledger keeps of them.

Source: the design page on judging, 3.8; kit requirements K-143, D37, D38.
"""

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Final

MOST_FIELDS: Final = 256
"""Fields of one result that are kept: a result line has at most 64 KiB (K-120)."""
NOTHING: Final = "nothing"
"""How a field that is not there is shown (D37)."""


def printed_numbers(result: Mapping[str, object]) -> dict[str, str]:
    """Return the result's numbers by their field, as decimal text that loses nothing."""
    found: dict[str, str] = {}
    for name, value in result.items():
        if is_number(value) and len(found) < MOST_FIELDS:
            found[name] = _decimal_text(value)
    return found


def is_number(value: object) -> bool:
    """Return whether a value is a JSON number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_float(text: str) -> float:
    """Return a decimal text as a number; beyond floating point it is infinite (D38)."""
    return float(text)


def as_json(value: object) -> str:
    """Return a value as JSON text, as a message shows it (D37)."""
    if isinstance(value, float) and not math.isfinite(value):
        return "a number beyond floating point"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def shortest_decimal(value: float) -> str:
    """Return a number as the shortest decimal that means it, without an exponent (D37)."""
    text = f"{Decimal(repr(value)):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimal_text(value: object) -> str:
    # The strict reader lets no integer through with more digits than Python prints.
    return str(value) if isinstance(value, int) else repr(value)
