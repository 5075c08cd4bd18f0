"""TOML of somebody's file: what can't be read, walked or shown is refused in words.

Python's reader knows no bounds: it raises one error for what is no TOML, another for nesting and
another for digits, and takes `0xfff…` of any length, which nothing can print afterwards.
"""

import tomllib
from typing import Any, Final

from thermite.schema.strict_json import MOST_DIGITS

MOST_LEVELS: Final = 32
"""Deepest nesting of tables and lists: as of a command's payload."""
_MOST: Final = 10**MOST_DIGITS
_TOO_LONG: Final = f"a whole number has more than {MOST_DIGITS} digits"


class NotToml(ValueError):  # noqa: N818 (the name says what is wrong with the text)
    """The bytes are not TOML that can be used; the text says why, in words."""


def read_toml(raw: bytes, *, most_levels: int = MOST_LEVELS) -> dict[str, Any]:
    """Return the document; whoever calls has seen to it that the bytes are few.

    Raises:
        NotToml: not UTF-8, no TOML, too deep, or a whole number of too many digits.
    """
    try:
        found = tomllib.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise NotToml(f"byte {error.start} is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise NotToml(str(error)) from None
    except RecursionError:
        raise NotToml("nested too deeply") from None
    except ValueError:  # the only other one: Python's own limit of decimal digits
        raise NotToml(_TOO_LONG) from None
    _check(found, most_levels)
    return found


def _check(found: dict[str, Any], most_levels: int) -> None:
    waiting: list[tuple[object, int]] = [(found, 1)]
    while waiting:
        node, level = waiting.pop()
        if isinstance(node, int) and abs(node) >= _MOST:
            raise NotToml(_TOO_LONG)
        if isinstance(node, dict | list):
            if level > most_levels:
                raise NotToml(f"nested more than {most_levels} levels deep")
            inner = node.values() if isinstance(node, dict) else node
            waiting += [(one, level + 1) for one in inner]
