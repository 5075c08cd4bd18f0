"""The check's result: one strict JSON object on the last line of its standard output.

Source: the reference page "Kit manifest", Check output; kit requirements D36, D47 to D51.
"""

import json
from collections.abc import Mapping
from typing import Final

from thermite.schema.strict import Strict
from thermite.schema.strict_json import NotStrictJson, read

KEPT_BYTES: Final = 64 << 10
"""How much of the end of an output exists at all (Kit manifest, Limits)."""
MOST_LEVELS: Final = 64
"""Deepest nesting of a result line (D01, D48)."""


class CheckResult(Strict):
    """What a check said: fields are all that it printed beside `pass` and `reasons`."""

    passed: bool
    reasons: list[str]
    fields: dict[str, object]


def read_result(stdout: bytes) -> CheckResult | None:
    """Return the result on the last line, None when there is none.

    Args:
        stdout: the end of the check's standard output, at most `KEPT_BYTES`.
    """
    line = _last_line(stdout)
    if line is None:
        return None
    try:
        said = read(line, most_bytes=KEPT_BYTES, most_levels=MOST_LEVELS)
    except NotStrictJson:
        return None
    if not isinstance(said, Mapping):
        return None
    fields = {name: value for name, value in said.items() if name not in {"pass", "reasons"}}
    return CheckResult(
        passed=said.get("pass") is True,
        reasons=_reasons(said.get("reasons")),
        fields=fields,
    )


def _last_line(stdout: bytes) -> bytes | None:
    # Lines end at \n only: at U+2028 or a vertical tab a candidate's text could begin one.
    before, newline, line = stdout.rstrip().rpartition(b"\n")
    if not newline and len(stdout) >= KEPT_BYTES:
        return None  # its beginning is lost, and what is left may be another object (D49)
    return line if newline else line or before


def _reasons(said: object) -> list[str]:
    if isinstance(said, str):
        said = [said]
    if not isinstance(said, list):
        return []
    texts = [item if isinstance(item, str) else _compact(item) for item in said]
    return [text for text in texts if text.strip()]


def _compact(item: object) -> str:
    return json.dumps(item, ensure_ascii=False, separators=(",", ":"))
