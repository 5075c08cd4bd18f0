"""What supervisor and harness say to each other: one JSON object a message, a closed list.

The supervisor offers files and fetches sources; the harness decides. Large bodies travel as
a sealed memory file beside the message. Neither trusts the other: an unknown `op` or field,
a second value under one name or a message beyond 64 KiB is refused whole.
Source: ledger and signing, 3.9.
"""

from typing import Final, Literal, TypeAlias
from urllib.parse import quote_from_bytes, unquote_to_bytes

import msgspec

from thermite.schema.command import McpProvider, Source, TrustedKey
from thermite.schema.strict import Strict
from thermite.schema.strict_json import NotStrictJson, read

MAX_MESSAGE_BYTES: Final = 64 << 10
"""Longest message (ledger and signing, 3.9)."""
MAX_OPEN_OFFERS: Final = 16
"""Most offers that are open at once (ledger and signing, 3.9)."""
COMMAND_SUFFIX: Final = ".cmd.json"
"""How the name of a command file ends (ledger and signing, 3.8)."""

STARTED: Final = 0
PRESENT: Final = 1

_MOST_LEVELS: Final = 8  # a message has four levels; the rest is room for later fields
_MOST_TEXT: Final = 2000  # characters of a message for people, as a reason is cut elsewhere
_PLAIN: Final = " !#$&'()*+,;=@[]{}~"  # printable ASCII that needs no escape in a name


class Hello(Strict, tag="hello", tag_field="op"):
    """A process has started: every offer that was open with the one before it is void.

    n: `STARTED` from the new process, which the other answers with `PRESENT`.
    """

    n: int


class Offer(Strict, tag="offer", tag_field="op"):
    """A file passed steps 1 to 7 at the supervisor; its bytes are in the memory file.

    name: as `name_text` writes it; dev, ino: the file's; sha256: of the file's bytes.
    """

    n: int
    name: str
    dev: int
    ino: int
    sha256: str


class Refuse(Strict, tag="refuse", tag_field="op"):
    """A file failed one of steps 1 to 7 at the supervisor.

    sha256: of its bytes, None when it was not read; size: bytes. A file that a trusted key
    signed has its bytes in a memory file beside the message: its sender is owed a receipt.
    """

    n: int
    name: str
    dev: int
    ino: int
    sha256: str | None
    size: int
    code: str
    message: str


class WantedSource(Strict):
    """One import that is missing; path: relative to `inbox/new/`; import_: its index."""

    import_: int = msgspec.field(name="import")
    source: Source
    repo: str
    commit: str
    path: str


class Fetch(Strict, tag="fetch", tag_field="op"):
    """Steps 2 to 12 passed; these imports are missing: only now may the network be used."""

    n: int
    sources: list[WantedSource]


class FetchedFile(Strict):
    """A bundle that lies at the import's path now."""

    import_: int = msgspec.field(name="import")
    path: str
    sha256: str


class FailedImport(Strict):
    """Why an import could not be fetched."""

    import_: int = msgspec.field(name="import")
    message: str


class Ready(Strict, tag="ready", tag_field="op"):
    """The fetching for the command with this digest is over."""

    n: int
    digest: str
    files: list[FetchedFile]
    failed: list[FailedImport]


class Unlock(Strict, tag="unlock", tag_field="op"):
    """A campaign's gateway needs what these MCP servers' headers carry.

    n: of the harness's own count; servers: with the names of accesses, no secret.
    """

    n: int
    servers: list[McpProvider]


class Unlocked(Strict, tag="unlocked", tag_field="op"):
    """The answer: for each server, in words, why its secrets can't be had; empty for all.

    What the others are sent is in the memory file beside it, JSON of server name to
    `SecretHeaders`, which the harness hands on and never reads.
    """

    n: int
    problems: dict[str, str]


class Wait(Strict, tag="wait", tag_field="op"):
    """Not now: offer again at a scan after `until` (RFC 3339); nothing was moved."""

    n: int
    code: str
    until: str


class Decided(Strict, tag="decided", tag_field="op"):
    """Final: the file has been moved; receipt: its file name in the outbox, or None."""

    n: int
    outcome: Literal["accepted", "refused", "duplicate"]
    code: str | None
    message: str | None
    receipt: str | None


ToHarness: TypeAlias = Hello | Offer | Refuse | Ready | Unlocked
ToSupervisor: TypeAlias = Hello | Fetch | Unlock | Wait | Decided
Message: TypeAlias = ToHarness | ToSupervisor

_TO_HARNESS: Final = msgspec.json.Decoder(ToHarness)
_TO_SUPERVISOR: Final = msgspec.json.Decoder(ToSupervisor)


class NotAMessageError(ValueError):
    """The other end said something that is not in the protocol; the text says what."""


class TrustCache(Strict):
    """`trust.json`: trust as the supervisor may know it; written by the harness alone.

    version: of the trust; rig, ledger: ids. The ledger's events are the truth.
    """

    v: Literal[1]
    version: int
    rig: str
    ledger: str
    keys: list[TrustedKey]


def encode(message: Message) -> bytes:
    """Return a message's bytes.

    Raises:
        RuntimeError: longer than a message may be; a bug of the caller.
    """
    raw = msgspec.json.encode(message)
    if len(raw) > MAX_MESSAGE_BYTES:
        raise RuntimeError(f"a message of {len(raw)} bytes: at most {MAX_MESSAGE_BYTES} are sent")
    return raw


def to_harness(raw: bytes) -> ToHarness:
    """Return what the supervisor said.

    Raises:
        NotAMessageError: not one of its messages.
    """
    _check_json(raw)
    try:
        return _TO_HARNESS.decode(raw)
    except msgspec.DecodeError as error:
        raise NotAMessageError(str(error)) from None


def to_supervisor(raw: bytes) -> ToSupervisor:
    """Return what the harness said.

    Raises:
        NotAMessageError: not one of its messages.
    """
    _check_json(raw)
    try:
        return _TO_SUPERVISOR.decode(raw)
    except msgspec.DecodeError as error:
        raise NotAMessageError(str(error)) from None


def name_text(name: bytes) -> str:
    """Return a file name as text from which `name_bytes` makes the same bytes again."""
    return quote_from_bytes(name, safe=_PLAIN)


def name_bytes(text: str) -> bytes:
    """Return the file name that `name_text` wrote.

    Raises:
        NotAMessageError: no plain name of one file in one folder.
    """
    name = unquote_to_bytes(text)
    if name_text(name) != text or name in {b"", b".", b".."} or b"/" in name or b"\0" in name:
        raise NotAMessageError(f"{text[:80]!a} is no file name")
    return name


def short(text: str) -> str:
    """Return a text for people at the length that a message carries."""
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"


def _check_json(raw: bytes) -> None:
    try:
        read(raw, most_bytes=MAX_MESSAGE_BYTES, most_levels=_MOST_LEVELS)
    except NotStrictJson as error:
        raise NotAMessageError(str(error)) from None
