"""The closed vocabulary: what may be asked, by whom, and how one message is read.

One JSON object of at most 64 KiB per message; unknown and missing fields are refused, and
so are duplicate keys. Each request has an `id`, and gets one reply with that id:
`{"id", "ok": true, ...}` or `{"id", "ok": false, "error": text}`.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

MAX_MESSAGE_BYTES: Final = 1 << 16
MAX_DESCRIPTORS: Final = 4
_MOST_WORDS: Final = 4096
"""Arguments, variables or paths in one list."""

Fields: TypeAlias = Mapping[str, Any]
Shape: TypeAlias = Mapping[str, str]

HARNESS: Final[Mapping[str, Shape]] = {
    "probe": {},
    "folder": {"slot": "text", "kind": "text"},
    "place": {"slot": "text"},
    "start": {
        "stage": "text",
        "slot": "text",
        "argv": "texts",
        "env": "variables",
        "limits": "limits",
        "cwd": "text?",
        "timed": "flag",
        "settle_ms": "count",
        "join_output": "flag",
        "readable": "texts",
        "gateway_port": "count?",
        "log": "flag",
    },
    "kill": {"slot": "text"},
    "collect": {"slot": "text", "paths": "texts", "limits": "collect_limits"},
    "sweep": {"slot": "text", "copy": "text?"},
    "block_begin": {"cpus": "counts", "cards": "counts"},
    "block_end": {},
}
SUPERVISOR: Final[Mapping[str, Shape]] = {"restart": {}}

_LIMITS: Final = {
    "timeout_s": "number?",
    "rss_mib": "count?",
    "disk_mib": "count?",
    "processes": "count?",
    "output_kib": "count",
}
_COLLECT_LIMITS: Final = {
    "entries": "count",
    "levels": "count",
    "total_bytes": "count",
    "links": "flag",
}
_SHAPES: Final[Mapping[str, Shape]] = {"limits": _LIMITS, "collect_limits": _COLLECT_LIMITS}


class RefusedError(Exception):
    """A request that can't be done; the text is for the harness's error."""

    request = 0


@dataclass(frozen=True)
class Request:
    """One well-formed request."""

    id: int
    do: str
    fields: Fields


def read_request(raw: bytes, words: Mapping[str, Shape]) -> Request:
    """Return the request in `raw`.

    Raises:
        RefusedError: it is no JSON object of this vocabulary; its `request` is the id, or 0.
    """
    message = _object(raw)
    number, word = message.pop("id", None), message.pop("do", None)
    if type(number) is not int or number < 0:
        raise RefusedError("a request needs an id, a whole number from 0 up")
    try:
        if type(word) is not str or word not in words:
            one_of = ", ".join(sorted(words))
            raise RefusedError(f"request {number}: {word!r} is not one of {one_of}")  # noqa: TRY301
        return Request(number, word, _fields(message, words[word], word))
    except RefusedError as refusal:
        refusal.request = number
        raise


def write(message: Mapping[str, object]) -> bytes:
    """Return the bytes of one reply."""
    return json.dumps(message, separators=(",", ":"), allow_nan=False).encode()


def _object(raw: bytes) -> dict[str, Any]:
    if len(raw) > MAX_MESSAGE_BYTES:
        raise RefusedError(f"a message of {len(raw)} bytes is over {MAX_MESSAGE_BYTES}")
    try:
        message = json.loads(raw, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise RefusedError(f"a message is not strict JSON: {error}") from None
    if type(message) is not dict:
        raise RefusedError("a message must be a JSON object")
    return message


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def _fields(message: dict[str, Any], shape: Shape, where: str) -> dict[str, Any]:
    unknown = message.keys() - shape.keys()
    if unknown:
        raise RefusedError(f"{where} has the unknown field {min(unknown)!r}")
    fields = {}
    for name, kind in shape.items():
        if name not in message:
            raise RefusedError(f"{where} needs the field {name!r}")
        fields[name] = _value(message[name], kind, f"{where}.{name}")
    return fields


def _value(value: Any, kind: str, where: str) -> Any:  # noqa: ANN401 - JSON in, JSON out
    if kind.endswith("?"):
        return None if value is None else _value(value, kind[:-1], where)
    if kind in _SHAPES:
        return _fields(_typed(value, dict, where), _SHAPES[kind], where)
    if kind == "variables":
        return {_text(k, where): _text(v, where) for k, v in _listed(value, dict, where).items()}
    if kind == "texts":
        return [_text(item, where) for item in _listed(value, list, where)]
    if kind == "counts":
        return [_count(item, where) for item in _listed(value, list, where)]
    return _PLAIN[kind](value, where)


def _typed(value: Any, wanted: type, where: str) -> Any:  # noqa: ANN401 - JSON in, JSON out
    if type(value) is not wanted:
        raise RefusedError(f"{where} must be a JSON {_WORD_OF[wanted]}")
    return value


def _listed(value: Any, wanted: type, where: str) -> Any:  # noqa: ANN401 - JSON in, JSON out
    if len(_typed(value, wanted, where)) > _MOST_WORDS:
        raise RefusedError(f"{where} has {len(value)} entries, at most {_MOST_WORDS} are allowed")
    return value


def _text(value: object, where: str) -> str:
    text = str(_typed(value, str, where))
    if "\0" in text:
        raise RefusedError(f"{where} holds a NUL character")
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise RefusedError(f"{where} can't be written as bytes") from None
    return text


def _flag(value: object, where: str) -> bool:
    return bool(_typed(value, bool, where))


def _count(value: object, where: str) -> int:
    number = int(_typed(value, int, where))
    if not 0 <= number < 1 << 53:
        raise RefusedError(f"{where} is {number}, and must be from 0 up and below 2**53")
    return number


def _number(value: object, where: str) -> float:
    if type(value) is int:
        return float(_count(value, where))
    number = float(_typed(value, float, where))
    if not (math.isfinite(number) and number >= 0):
        raise RefusedError(f"{where} is {number}, and must be finite and from 0 up")
    return number


_WORD_OF: Final = {
    dict: "object",
    list: "list",
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
}
_PLAIN: Final = {"text": _text, "flag": _flag, "count": _count, "number": _number}
