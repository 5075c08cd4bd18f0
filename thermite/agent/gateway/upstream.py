"""One MCP server as the gateway sees it: a task that keeps the connection, and calls over it.

A connection that breaks takes its task's block with it, and nothing else; the next try follows
after a pause. Source: agents and control, A9 and the facts in A14.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import (
    MCP_DEFAULT_SSE_READ_TIMEOUT,
    MCP_DEFAULT_TIMEOUT,
)
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, Tool

from thermite.agent.gateway.hidden import Hidden
from thermite.agent.gateway.stdio import NoServerError, stdio
from thermite.agent.gateway.wire import MOST_WHOLE, Server
from thermite.schema.access import SecretHeaders

MOST_TOOLS: Final = 1000
"""Tools that are taken from one server's list (our figure)."""
MOST_PAGES: Final = 50
"""Pages of such a list (our figure)."""
LIST_S: Final = 15.0
"""How long a server may take until its tools are known, s (our figure)."""
FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 10.0
"""Pauses between tries double, from the first to the longest (our figures)."""
TICK_S: Final = 1.0
"""Most that one look at the clock counts: this process stands still while the judge measures."""
_SHOWN: Final = 300

_Got = TypeVar("_Got")
_Said = TypeVar("_Said", CallToolResult, Tool)


class UnreachableError(Exception):
    """A server is not there, or went away in a call; in words why."""


class Upstream:
    """The connection to one server; `run` keeps it until it is cancelled.

    Args:
        note: told when the server goes away or can't be reached, once for each reason.
        secret: what a server with an address is sent in headers; no word of it comes out again.
    """

    def __init__(
        self,
        server: Server,
        path: str,
        note: Callable[[str], Awaitable[None]],
        secret: SecretHeaders | None = None,
    ) -> None:
        self.name = server.name
        self._secret = secret
        self.hidden = Hidden(secret.headers.values() if secret else ())
        self._server, self._path, self._note = server, path, note
        self._client: Client | None = None
        self._known: list[Tool] = []
        self._why = "it has not answered yet"
        self._tail = bytearray()
        self._tried = asyncio.Event()
        self._broken = asyncio.Event()

    async def run(self) -> None:
        """Connect, stay, and connect again when the connection breaks."""
        pause = FIRST_PAUSE_S
        while self._server.problem is None:
            why = await self._life()
            if self._known and self._why == "":
                pause = FIRST_PAUSE_S
            if why != self._why:
                await self._note(f"MCP server {self.name}: {why}")
            self._why = why
            self._tried.set()
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
        self._why = self._server.problem
        await self._note(f"MCP server {self.name}: {self._why}")
        self._tried.set()

    async def _life(self) -> str:
        """Live through one connection and return in words how it ended."""
        self._broken = asyncio.Event()
        self._tail.clear()
        try:
            async with Client(self._target(), cache=None) as client:
                self._known = await within(LIST_S, _listed(client))
                self._client, self._why = client, ""
                self._tried.set()
                await self._broken.wait()
                return "the connection broke"
        except TimeoutError:
            return f"it did not answer within {LIST_S:.0f} s"
        except Exception as error:  # noqa: BLE001 - whatever an SDK and a server make of it
            lines = self._tail.decode("utf-8", "replace").strip().splitlines()
            said = f" ({lines[-1].strip()[:_SHOWN]})" if lines else ""
            return self._words(error) + said
        finally:
            self._client = None
            self._broken.set()

    @contextlib.asynccontextmanager
    async def _target(self) -> AsyncIterator[TransportStreams]:
        if self._server.command is not None:
            env = _environment(self._path)
            async with stdio(self._server.command, env, self._tail) as streams:
                yield streams
        else:
            url = str(self._server.url)
            async with (
                _http(self._secret, self._tail) as http,
                streamable_http_client(
                    url, http_client=http, max_sse_event_size=MOST_WHOLE
                ) as streams,
            ):
                yield streams

    async def tools(self) -> list[Tool]:
        """Return what the server lists now; what it listed last when it can't be asked."""
        client = await self._connected()
        if client is not None:
            try:
                self._known = await within(LIST_S, self._unless_broken(_listed(client)))
            except (TimeoutError, MCPError, UnreachableError):
                pass  # a call will tell
            except Exception as error:  # noqa: BLE001 - whatever an SDK makes of a server's words
                await self._note(f"MCP server {self.name}: its list of tools: {self._words(error)}")
        return self._cleaned()

    def _cleaned(self) -> list[Tool]:
        """Return the known tools; one that is none without what is hidden in it is left out."""
        found = []
        for one in self._known:
            with contextlib.suppress(ValueError, RecursionError):
                found.append(self._clean(one))
        return found

    async def call(self, tool: str, arguments: Mapping[str, Any], most_s: float) -> CallToolResult:
        """Call a tool.

        Raises:
            UnreachableError: the server is gone. TimeoutError: it took longer than `most_s`.
            MCPError: the server refused the call.
        """
        client = await self._connected()
        if client is None:
            raise UnreachableError(self._why)
        asked = client.call_tool(tool, dict(arguments))
        return self._clean(await within(most_s, self._unless_broken(asked)))

    def _clean(self, said: _Said) -> _Said:
        """Return what a server said without what it was sent."""
        if not self.hidden:
            return said
        raw = said.model_dump(mode="json", by_alias=True, exclude_none=True)
        return type(said).model_validate(self.hidden.out_of_all(raw))

    def _words(self, error: BaseException) -> str:
        """Return the first plain reason in an error, which may be a group of groups, and be long.

        What is hidden goes before the text is cut: its beginning would be left else.
        """
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, NoServerError):
            return str(error)
        said = " ".join(self.hidden.out_of(str(error)).split())[:_SHOWN]
        return f"{type(error).__name__}: {said}" if said else type(error).__name__

    async def _connected(self) -> Client | None:
        """Return the connection, once it has been tried at all."""
        with contextlib.suppress(TimeoutError):
            await within(LIST_S, self._tried.wait())
        return self._client

    async def _unless_broken(self, asked: Awaitable[_Got]) -> _Got:
        """Await an answer, but no longer than the connection lasts."""
        answer = asyncio.ensure_future(asked)
        broken = asyncio.ensure_future(self._broken.wait())
        try:
            await asyncio.wait({answer, broken}, return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
            raise UnreachableError("the connection broke")
        except MCPError as error:
            if "closed" in str(error).lower():
                self._broken.set()
                raise UnreachableError("the connection broke") from None
            raise
        finally:
            for task in (answer, broken):
                task.cancel()


async def within(seconds: float, awaited: Awaitable[_Got]) -> _Got:
    """Await something for at most so long; time in which this process was frozen counts little.

    Raises:
        TimeoutError: it took longer, and was cancelled.
    """
    task = asyncio.ensure_future(awaited)
    left = seconds
    try:
        while left > 0:
            tick = min(TICK_S, left)
            done, _ = await asyncio.wait({task}, timeout=tick)
            if done:
                return task.result()
            left -= tick
    finally:
        task.cancel()
    raise TimeoutError


async def _listed(client: Client) -> list[Tool]:
    found: list[Tool] = []
    cursor = None
    for _ in range(MOST_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None or len(found) >= MOST_TOOLS:
            break
    return found[:MOST_TOOLS]


def _http(secret: SecretHeaders | None, tail: bytearray) -> httpx2.AsyncClient:
    """Return a client that sends a server its secret, straight to it and nowhere else.

    No proxy and no file of the environment has a say where a secret goes; the SDK follows no
    redirect to another server.

    Args:
        tail: gets the status of an answer that is an error, which the SDK keeps to itself.
    """

    async def keep_status(response: httpx2.Response) -> None:
        if response.is_error:
            tail[:] = f"HTTP {response.status_code}".encode()

    trusted = None if secret is None else secret.trusted
    return httpx2.AsyncClient(
        headers=None if secret is None else secret.headers,
        timeout=httpx2.Timeout(MCP_DEFAULT_TIMEOUT, read=MCP_DEFAULT_SSE_READ_TIMEOUT),
        verify=True if trusted is None else ssl.create_default_context(cadata=trusted),
        trust_env=False,
        event_hooks={"response": [keep_status]},
    )


def _environment(path: str) -> dict[str, str]:
    """Return all that a server of the gateway's finds in its environment."""
    folder = str(Path.cwd())
    return {"PATH": path, "LANG": "C.UTF-8", "HOME": folder, "TMPDIR": folder}
