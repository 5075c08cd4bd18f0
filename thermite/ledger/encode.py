"""An event and its exact bytes, and every reason to refuse one.

An encoder may drop what JSON cannot hold (NaN becomes null, a lone surrogate breaks the
text), and an event that does not come back as it went in could never be replayed. So the
bytes are decoded again, and compared, before they can reach a transaction.

Source: ledger and signing, 1.2 (msgspec) and 3.2, Writer rules.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import eq, or_
from typing import Any, Final, NamedTuple, Self

import msgspec

from thermite.errors import LedgerError
from thermite.ledger.chain import leaf, leaves
from thermite.ledger.dedup import dedup_key, dedup_keys
from thermite.schema.event import ENVELOPES, MOST_MONO_NS, Event
from thermite.schema.strict import MOST_WHOLE
from thermite.schema.strict_json import NotStrictJson, read

MOST_BODY_BYTES: Final = 256 * 1024
"""Longest body of an event; larger things are kept by their SHA-256 (3.2)."""
MOST_LEVELS: Final = 32
"""Deepest nesting of an event: the deepest contract (29) at its third. What an interpreter's own
stack allows differs from one Python to the next, and another one must read this ledger."""

_TAGS: Final[Mapping[type[Event], str]] = {envelope: tag for tag, envelope in ENVELOPES.items()}
_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final[msgspec.json.Decoder[Event]] = msgspec.json.Decoder(reduce(or_, ENVELOPES.values()))
_BOUNDED: Final = frozenset(
    {
        *("trust_set", "key_revoked", "trust_reset", "ledger_gap", "isolation_probe"),
        *("command_refused", "refusals_suppressed", "import_completed", "mcp_servers", "local_job"),
        *("assignment_paused", "assignment_resumed", "tool_called", "agent_finished"),
        *("candidate_submitted", "candidate_refused", "attempt_ended", "run", "check"),
        *("goal_checked", "hold", "hold_resolved", "review_vote", "review_result", "steered"),
    }
)
"""Types whose fields say themselves how large a number may be and how deep a value nests, so that
who decoded one and found it equal need not look through its bytes; a test walks each."""
_MARKS: Final = bytes.maketrans(b"0123456789{", b"0000000000[")
"""What is looked for in one go: brackets, which may nest, and digits, which may be too many."""
_SIXTEEN: Final = b"0" * 16
"""2^53 has 16 digits: a body without as many in a row is fine."""
_LONG_NUMBER: Final = re.compile(rb"[:\[,\s]-?[0-9]{16}")
"""Where such digits may be a number, not part of an id."""
_DATA: Final = b'"data":'  # the envelope's last member: what stands before it holds no quote
_AT_ONCE: Final = 64
"""How many events go through each step together: their bytes stay in the processor's cache."""


class Row(msgspec.Struct, frozen=True, gc=False):
    """One event as the file holds it, but for its place: type, exact bytes, leaf hash, key.

    at: its own time, which the file holds in the bytes only.
    """

    type: str
    body: bytes
    leaf: bytes
    dedup: str | None
    at: str


class Rows(NamedTuple):
    """Several events as `Row` has one, column by column: what is kept of each has one index.

    A tuple for each event would cost more than its hash, most of it the collector's.
    """

    types: list[str]
    bodies: list[bytes]
    leaves: list[bytes]
    dedups: list[str | None]
    times: list[str]

    @classmethod
    def of(cls, rows: Iterable[Row]) -> Self:
        """Return single rows as columns."""
        columns = cls([], [], [], [], [])
        for row in rows:
            columns.types.append(row.type)
            columns.bodies.append(row.body)
            columns.leaves.append(row.leaf)
            columns.dedups.append(row.dedup)
            columns.times.append(row.at)
        return columns

    def extend(self, others: Self) -> None:
        """Add other rows behind these."""
        self.types.extend(others.types)
        self.bodies.extend(others.bodies)
        self.leaves.extend(others.leaves)
        self.dedups.extend(others.dedups)
        self.times.extend(others.times)


def encode(event: Event) -> Row:
    """Return the row of an event.

    Raises:
        LedgerError: the event is none of ours, too large, or would not come back from its
            JSON as it went in; a bug of the caller, said with the field's name.
    """
    try:
        tag = _TAGS[type(event)]
        body = _ENCODER.encode(event)
        back = _DECODER.decode(body)
    except (KeyError, msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return _carefully(event)
    if back != event or len(body) > MOST_BODY_BYTES or not (tag in _BOUNDED or _is_plain(body)):
        return _carefully(event)
    return Row(tag, body, leaf(body), dedup_key(event), event.at)


def encode_all(events: Sequence[Event]) -> Rows:
    """Return the rows of events, each as `encode` does, in less time.

    Raises:
        LedgerError: one of them can't be kept, as `encode` says.
    """
    rows = Rows([], [], [], [], [])
    try:
        for at in range(0, len(events), _AT_ONCE):
            part = events[at : at + _AT_ONCE]
            types = [_TAGS[type(event)] for event in part]
            bodies = [*map(_ENCODER.encode, part)]
            if not (all(map(eq, map(_DECODER.decode, bodies), part)) and _are_plain(types, bodies)):
                return Rows.of(map(_carefully, events))
            times = [event.at for event in part]
            rows.extend(Rows(types, bodies, leaves(bodies), dedup_keys(part), times))
    except (KeyError, msgspec.MsgspecError, TypeError, ValueError, OverflowError, RecursionError):
        return Rows.of(map(_carefully, events))
    return rows


def _are_plain(types: Sequence[str], bodies: Sequence[bytes]) -> bool:
    """Return whether every reader of JSON keeps these bodies as they are: false where not sure."""
    return max(map(len, bodies)) <= MOST_BODY_BYTES and (
        _BOUNDED.issuperset(types)
        or all(tag in _BOUNDED or _is_plain(body) for tag, body in zip(types, bodies, strict=True))
    )


def _is_plain(body: bytes) -> bool:
    """Return whether every reader of JSON keeps a body as it is: false where it may not."""
    marks = body[body.index(_DATA) :].translate(_MARKS)
    return marks.count(b"[") < MOST_LEVELS and _SIXTEEN not in marks  # the envelope is a level


def _carefully(event: Event) -> Row:
    """Look closer at an event, and say what is wrong with it if something is."""
    tag = _TAGS.get(type(event))
    if tag is None:
        raise LedgerError(
            f"{type(event).__name__} is no event that a ledger keeps: use one of schema.event"
        )
    body = _bytes_of(event, tag)
    if len(body) > MOST_BODY_BYTES:
        raise LedgerError(
            f"an event {tag} takes {len(body)} bytes, and at most {MOST_BODY_BYTES} are kept:"
            " keep what is large by its SHA-256"
        )
    _check_levels(body, tag)
    _check_numbers(event, body, tag)
    try:
        back = decode(body)
    except ValueError as error:
        raise LedgerError(f"an event {tag} would not come back: {error}") from None
    if back != event:
        place = _difference(event, back, "") or "a field"
        raise LedgerError(f"an event {tag} would not come back as it went in: {place}")
    return Row(tag, body, leaf(body), dedup_key(event), event.at)


def decode(body: bytes) -> Event:
    """Return the event that the bytes are.

    Raises:
        ValueError: no event of this version; the text says where.
    """
    try:
        return _DECODER.decode(body)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def decode_all(bodies: Iterable[bytes]) -> list[Event] | None:
    """Return the events that the bodies are, or None when `decode` would refuse one of them."""
    try:
        return [*map(_DECODER.decode, bodies)]
    except (msgspec.MsgspecError, RecursionError):
        return None


def _bytes_of(event: Event, tag: str) -> bytes:
    try:
        return _ENCODER.encode(event)
    except (msgspec.MsgspecError, TypeError, OverflowError, UnicodeEncodeError) as error:
        raise LedgerError(f"an event {tag} has no JSON form: {error}") from None
    except RecursionError:
        raise LedgerError(f"an event {tag} has no JSON form: it is nested too deeply") from None


def _check_levels(body: bytes, tag: str) -> None:
    try:
        read(body, most_bytes=MOST_BODY_BYTES, most_levels=MOST_LEVELS)
    except NotStrictJson as why:
        raise LedgerError(f"an event {tag} is no JSON that every reader takes: {why}") from None


def _check_numbers(event: Event, body: bytes, tag: str) -> None:
    place = None
    if not 0 <= event.mono_ns <= MOST_MONO_NS:
        place = f"mono_ns {event.mono_ns}"
    elif _LONG_NUMBER.search(body, body.index(_DATA)):
        place = _beyond(msgspec.json.decode(body)["data"], "data")
    if place is not None:
        raise LedgerError(
            f"an event {tag} holds a whole number that JSON readers do not keep: {place} is"
            f" beyond {MOST_WHOLE}; write it as text"
        )


def _beyond(value: Any, place: str) -> str | None:  # noqa: ANN401 (any JSON value)
    """Return where a whole number is too large for JSON's readers, or None."""
    match value:
        case bool():
            return None
        case int():
            return f"{place} {value}" if abs(value) > MOST_WHOLE else None
        case dict():
            found = (_beyond(part, _under(place, name)) for name, part in value.items())
        case list():
            found = (_beyond(part, f"{place}[{at}]") for at, part in enumerate(value))
        case _:
            return None
    return next((place for place in found if place is not None), None)


def _difference(sent: Any, back: Any, place: str) -> str | None:  # noqa: ANN401 (any value)
    """Return the first place where two values differ, and how, or None."""
    if sent == back:
        return None
    parts = _parts(sent)
    others = dict(_parts(back))
    for name, part in parts:
        if name not in others:
            return f"{_under(place, name)} is lost"
        found = _difference(part, others[name], _under(place, name))
        if found is not None:
            return found
    return f"{place} is {sent!r:.60} and comes back as {back!r:.60}"


def _parts(value: Any) -> Sequence[tuple[str, Any]]:  # noqa: ANN401 (any value)
    match value:
        case msgspec.Struct():
            return [(name, getattr(value, name)) for name in value.__struct_fields__]
        case dict():
            return [(str(name), part) for name, part in value.items()]
        case list() | tuple():
            return [(str(at), part) for at, part in enumerate(value)]
        case _:
            return []


def _under(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name
