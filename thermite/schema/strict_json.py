"""Strict JSON: what one reader takes, every reader takes for the same.

Manifest, contract, envelope, payload and check result are all read here, so that no two
parts of a rig ever see two meanings in one file. Source: kit requirements D01, D02, D48;
ledger and signing, 3.8. A number beyond floating point (`1e999`) comes back as infinity,
since only the caller can name the place where it stands.
"""

import json
from typing import Final, NoReturn

MOST_DIGITS: Final = 4300
"""Most digits of one integer: Python's own limit (sys.int_info.default_max_str_digits)."""

_ESCAPE: Final = "\\u"
_SHOWN: Final = 60  # characters of a name that a message repeats: one line of a terminal
_WIDE_MARKS: Final = (  # Unicode standard, 23.8: byte order marks other than UTF-8's
    (b"\xff\xfe\x00\x00", "UTF-32"),
    (b"\x00\x00\xfe\xff", "UTF-32"),
    (b"\xff\xfe", "UTF-16"),
    (b"\xfe\xff", "UTF-16"),
)


class NotStrictJson(ValueError):  # noqa: N818 (the name says what is wrong with the text)
    """The bytes are not one strict JSON value; the text says why, in words."""


def read(raw: bytes, *, most_bytes: int, most_levels: int) -> object:
    """Return the one JSON value that the bytes hold.

    Args:
        most_bytes: more than this is refused before anything is decoded.
        most_levels: deepest nesting of arrays and objects; `[]` is one level.

    Raises:
        NotStrictJson: too long, not UTF-8, a byte order mark, no or several values, a
            duplicate key, NaN or Infinity, half a surrogate pair, too deep or too many
            digits; the fault of whoever wrote the bytes.
    """
    if len(raw) > most_bytes:
        raise NotStrictJson(f"{len(raw)} bytes, and at most {most_bytes} are read")
    text = _decode(raw)
    value = _parse(text)
    # Few brackets can't nest deeply, and without an escape a text of UTF-8 holds no surrogate.
    if _ESCAPE in text or text.count("[") + text.count("{") > most_levels:
        _check_tree(value, most_levels)
    return value


def _decode(raw: bytes) -> str:
    if raw.startswith(b"\xef\xbb\xbf"):
        raise NotStrictJson("starts with a byte-order mark: save it as UTF-8 without one")
    for mark, name in _WIDE_MARKS:
        if raw.startswith(mark):
            raise NotStrictJson(f"is {name}: save it as UTF-8 without a byte-order mark")
    if b"\x00" in raw[:2]:
        raise NotStrictJson("holds a NUL byte, as UTF-16 has it: save it as UTF-8")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotStrictJson(f"byte {error.start} is not UTF-8") from None
    if not text.strip(" \t\r\n"):
        raise NotStrictJson("is empty")
    return text


def _parse(text: str) -> object:
    try:
        value: object = _DECODER.decode(text)
    except RecursionError:
        raise NotStrictJson("nested too deeply to be read") from None
    except json.JSONDecodeError as error:
        said = "more than one value" if error.msg == "Extra data" else error.msg.lower()
        raise NotStrictJson(f"{said} at line {error.lineno} column {error.colno}") from None
    return value


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise NotStrictJson(f"the name {shown(name)} stands twice in one object")
            seen.add(name)
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise NotStrictJson(f"{name} is not a JSON number")


def _integer(digits: str) -> int:
    too_long = f"an integer of {len(digits)} digits, and at most {MOST_DIGITS} fit"
    if len(digits) > MOST_DIGITS:
        raise NotStrictJson(too_long)
    try:
        return int(digits)
    except ValueError:  # PYTHONINTMAXSTRDIGITS may set a lower limit than Python's own
        raise NotStrictJson(too_long) from None


# Made once: making one takes longer than reading a message with it.
_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_refuse_constant, parse_int=_integer
)


def _check_tree(value: object, most_levels: int) -> None:
    """Walk without recursion: depth, and halves of surrogate pairs in every text."""
    level = [value]
    for _ in range(most_levels + 1):
        inner: list[object] = []
        for node in level:
            if isinstance(node, str):
                _check_text(node)
            elif isinstance(node, dict):
                inner.extend(node)
                inner.extend(node.values())
            elif isinstance(node, list):
                inner.extend(node)
        if not inner and not any(isinstance(node, (dict, list)) for node in level):
            return
        level = inner
    raise NotStrictJson(f"nested more than {most_levels} levels deep")


def _check_text(text: str) -> None:
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        half = f"\\u{ord(text[error.start]):04x}"
        raise NotStrictJson(f"a text holds {half}, one half of a surrogate pair") from None


def shown(text: str) -> str:
    """Return a text as a message may repeat it: ASCII, quoted, at most one line long."""
    cut = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return json.dumps(cut, ensure_ascii=True)
