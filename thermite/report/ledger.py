"""Events and folded state as lines and JSON, for the read-only tools of a ledger.

An event's body is passed on byte for byte, but for what would end a line or command a
terminal: line breaks between JSON's tokens become spaces, and control characters inside
its strings their escapes, so the JSON means the same.

Source: ledger and signing, 3.6.
"""

import dataclasses
import json
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

import msgspec

from thermite.errors import LedgerError

CSV_COLUMNS: Final = (
    "seq",
    "type",
    "id",
    "assignment",
    "lane",
    "actor",
    "at",
    "boot",
    "mono_ns",
    "cause",
    "command",
    "data",
    "hash",
)
# What moves a cursor or reorders text: C0 and C1 with DEL, and the marks of UAX 9.
_WRITTEN_OUT: Final = {9: " ", 10: " ", 13: " "} | {
    code: f"\\u{code:04x}"
    for code in (
        *range(9),
        11,
        12,
        *range(14, 32),
        *range(127, 160),
        0x061C,
        0x200E,
        0x200F,
        0x2028,
        0x2029,
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
    )
}
_SHOWN: Final = 160  # characters of an event's data in a line of `tail`


class _Envelope(msgspec.Struct):
    """An event of any type and version, its data as it stands."""

    id: str
    assignment: str | None
    lane: int | None
    actor: str
    at: str
    boot: str
    mono_ns: int
    cause: str | None
    command: str | None
    data: msgspec.Raw


def json_line(seq: int, digest: bytes, body: bytes) -> str:
    """Return an event as one line of JSON: its number, its hash and its exact body.

    Raises:
        LedgerError: its body is no event.
    """
    _read(seq, body)
    return f'{{"seq":{seq},"hash":"{digest.hex()}","event":{_one_line(body)}}}'


def csv_row(seq: int, kind: str, digest: bytes, body: bytes) -> list[str]:
    """Return an event as the values of CSV_COLUMNS; null is empty, data is JSON.

    Raises:
        LedgerError: its body is no event.
    """
    said = _read(seq, body)
    values = {name: getattr(said, name) for name in said.__struct_fields__}
    values |= {
        "seq": seq,
        "type": kind,
        "hash": digest.hex(),
        "data": _one_line(bytes(said.data)),
    }
    texts = ("" if values[name] is None else str(values[name]) for name in CSV_COLUMNS)
    return [text.translate(_WRITTEN_OUT) for text in texts]


def tail_line(seq: int, kind: str, body: bytes) -> str:
    """Return an event as one line for a person, its data shortened.

    Raises:
        LedgerError: its body is no event.
    """
    said = _read(seq, body)
    about = f" {said.assignment[:8]}" if said.assignment else ""
    lane = f" lane {said.lane}" if said.lane is not None else ""
    told = _one_line(bytes(said.data))
    short = told if len(told) <= _SHOWN else f"{told[:_SHOWN]}…"
    return f"{seq} {said.at} {kind}{about}{lane} {said.actor} {short}"


def state_document(state: object) -> dict[str, Any]:
    """Return folded state as JSON's own kinds of values; a pair as a key is joined by `/`."""
    return {"state": _plain(state)}


def state_text(state: object) -> str:
    """Return folded state as indented JSON."""
    return json.dumps(state_document(state), indent=2)


def event_document(seq: int, digest: bytes, body: bytes) -> dict[str, Any]:
    """Return an event as JSON's own kinds of values.

    Raises:
        LedgerError: its body is no event.
    """
    _read(seq, body)
    return {"seq": seq, "hash": digest.hex(), "event": msgspec.json.decode(body)}


def _read(seq: int, body: bytes) -> _Envelope:
    try:
        return msgspec.json.decode(body, type=_Envelope)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise LedgerError(f"event {seq} can't be read: {error}; run thermite audit") from None


def _one_line(body: bytes) -> str:
    return body.decode("utf-8", "backslashreplace").translate(_WRITTEN_OUT)


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value):
        return {
            field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)
        }
    if isinstance(value, Mapping):
        return {
            "/".join(key) if isinstance(key, tuple) else str(key): _plain(part)
            for key, part in value.items()
        }
    if isinstance(value, AbstractSet):
        return sorted(_plain(part) for part in value)  # type: ignore[type-var]
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return msgspec.to_builtins(value)
