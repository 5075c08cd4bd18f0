"""What harness and gateway say to each other, and how it is framed.

Messages are msgpack behind their length; a listener's descriptor goes beside its message. The
gateway runs in a slot where foreign programs run too, so the harness bounds and checks what it
reads, and believes nothing of it but that it was said.
"""

import struct
from typing import Final, Literal, TypeAlias

import msgspec

from thermite.schema.access import SecretHeaders
from thermite.schema.contract import AgentKind
from thermite.schema.strict import Strict

MOST_WHOLE: Final = 16 << 20
"""Longest result that is taken from a server at all, bytes (our figure)."""
MOST_FRAME: Final = MOST_WHOLE + (1 << 20)
"""Longest message, bytes: a whole result and what is said of it."""
HEAD: Final = struct.Struct(">I")
"""How long the message is that follows."""


class Server(Strict):
    """One MCP server: the argv of a program, or the address of one that is there already.

    problem: why it can't be reached at all, in words: a secret for its headers is missing.
    """

    name: str
    command: list[str] | None = None
    url: str | None = None
    problem: str | None = None


class Caller(Strict):
    """Who may call: its token, its kind, its lane, and per server its tools, None for all."""

    token: str
    kind: AgentKind
    lane: int | None
    grants: dict[str, list[str] | None]


class Figures(Strict):
    """The limits of calls. Source: agents and control, A9, Client side.

    call_s: seconds of one call, frozen time not counted; result_bytes: of what an agent gets;
    calls: of one attempt.
    """

    call_s: float = 60.0
    result_bytes: int = 60 << 10
    calls: int = 500


class SetUp(Strict, tag="set_up"):
    """The first message to a gateway.

    inside_port: that of listeners that are sent to it; port: its own of loopback, 0 for any: a
    gateway that follows on another one is found where that was; has_secrets: a memory file comes
    beside this message, with what servers are sent in headers.
    """

    servers: list[Server]
    callers: list[Caller]
    inside_port: int
    path: str
    port: int = 0
    figures: Figures = msgspec.field(default_factory=Figures)
    has_secrets: bool = False


class Begin(Strict, tag="begin"):
    """An attempt of this caller is under way, which has made so many calls.

    has_listener: one inside its worker's own network comes beside this message.
    """

    token: str
    has_listener: bool = False
    calls: int = 0


class End(Strict, tag="end"):
    """The caller's attempt has ended: it may call nothing until the next one."""

    token: str


class Ready(Strict, tag="ready"):
    """The gateway listens on this port of the machine's loopback."""

    port: int


class Called(Strict, tag="called"):
    """One call. Only a result that was cut comes whole, with its digest.

    server: empty where the name is no tool's; size: of the whole result, bytes.
    """

    token: str
    server: str
    tool: str
    ms: int
    outcome: Literal["ok", "error", "refused", "limit", "timeout", "unreachable", "too_large"]
    size: int
    whole: bytes | None = None


class Note(Strict, tag="note"):
    """Something that the rig's owner should know: a name that was mapped, a server that is gone."""

    text: str


ToGateway: TypeAlias = SetUp | Begin | End
FromGateway: TypeAlias = Ready | Called | Note

_SECRETS: Final = msgspec.json.Decoder(dict[str, SecretHeaders])
_TO_GATEWAY: Final = msgspec.msgpack.Decoder(ToGateway)
_FROM_GATEWAY: Final = msgspec.msgpack.Decoder(FromGateway)


def frame(message: ToGateway | FromGateway) -> bytes:
    """Return a message with its length before it."""
    raw = msgspec.msgpack.encode(message)
    return HEAD.pack(len(raw)) + raw


def length(head: bytes) -> int:
    """Return how long the message behind this head is.

    Raises:
        ValueError: longer than any message.
    """
    (size,) = HEAD.unpack(head)
    if size > MOST_FRAME:
        raise ValueError(f"a message of {size} bytes: the longest has {MOST_FRAME}")
    return int(size)


def to_gateway(raw: bytes) -> ToGateway:
    """Read a message of the harness's.

    Raises:
        msgspec.DecodeError: it is none.
    """
    return _TO_GATEWAY.decode(raw)


def secret_headers(raw: bytes) -> dict[str, SecretHeaders]:
    """Read a memory file that came beside the first message.

    Raises:
        ValueError: it is none; the text holds nothing of it.
    """
    try:
        return _SECRETS.decode(raw)
    except msgspec.DecodeError:
        raise ValueError("the memory file beside it holds no headers") from None


def from_gateway(raw: bytes) -> FromGateway:
    """Read a message of the gateway's.

    Raises:
        msgspec.DecodeError: it is none.
    """
    return _FROM_GATEWAY.decode(raw)
