"""The gateway's own side: HTTP on loopback, whose token it is, and the SDK's server behind it.

One app answers on every listener: the machine's loopback, and those inside workers' own
networks that the harness sends. Host and Origin are looked at before anything else, then the
token: without one of ours there is no answer but 401. Source: agents and control, A9.
"""

import asyncio
import contextlib
import hmac
import json
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from typing import Any, Final

import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from thermite.agent.gateway.calls import Calls

HOST: Final = "127.0.0.1"
PATH: Final = "/mcp"
MOST_REQUEST: Final = 1 << 20
"""Longest request of an agent, bytes (our figure)."""
MOST_AT_ONCE: Final = 64
"""Connections and requests that one listener serves at a time (our figure)."""
_BEARER: Final = "Bearer "
_UNAUTHORIZED: Final = 401

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


class Doors:
    """The listeners of one gateway, all with one app."""

    def __init__(self, calls: Calls, tokens: Iterable[str], ports: Iterable[int]) -> None:
        self._tokens = frozenset(tokens)
        server = Server(
            "thermite",
            on_list_tools=self._list(calls),
            on_call_tool=self._call(calls),
        )
        names = [f"{name}:{port}" for name in (HOST, "localhost") for port in ports]
        self._app = server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            max_request_body_size=MOST_REQUEST,
            transport_security=TransportSecuritySettings(
                allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
            ),
        )
        self._open: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def running(self) -> Any:  # noqa: ANN401 - an async iterator of nothing
        """Run what the app needs behind it."""
        async with self._app.router.lifespan_context(self._app):
            yield

    def open(self, listener: socket.socket) -> asyncio.Task[None]:
        """Answer on a listener until the task is cancelled.

        Head and body of an answer are two packets: without TCP_NODELAY, which connections inherit
        (tcp(7)), the second waits some 40 ms for the first one's acknowledgement.
        """
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        config = uvicorn.Config(
            _Guarded(self._app, self._tokens),
            lifespan="off",
            log_config=None,
            access_log=False,
            limit_concurrency=MOST_AT_ONCE,
            timeout_keep_alive=30,
            server_header=False,
        )
        task = asyncio.create_task(_Listening(config).serve(sockets=[listener]))
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        return task

    @staticmethod
    def _list(calls: Calls) -> Any:  # noqa: ANN401 - the SDK's own callback
        async def listed(
            context: ServerRequestContext[Any], _: PaginatedRequestParams | None
        ) -> ListToolsResult:
            return ListToolsResult(tools=await calls.tools(_token(context)))

        return listed

    @staticmethod
    def _call(calls: Calls) -> Any:  # noqa: ANN401 - the SDK's own callback
        async def called(
            context: ServerRequestContext[Any], asked: CallToolRequestParams
        ) -> CallToolResult:
            return await calls.call(_token(context), asked.name, asked.arguments or {})

        return called


class _Listening(uvicorn.Server):
    """A server of one listener; signals are the process's own."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone."""
        yield


class _Guarded:
    """Lets nobody in without a token."""

    def __init__(self, app: App, tokens: frozenset[str]) -> None:
        self._app, self._tokens = app, tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] == "http" and self._is_known(scope):
            await self._app(scope, receive, send)
            return
        body = json.dumps({"error": "give the bearer token of your brief"}).encode()
        headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": _UNAUTHORIZED, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def _is_known(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        said = given[0].decode("latin-1")
        return any(hmac.compare_digest(said, f"{_BEARER}{token}") for token in self._tokens)


def _token(context: ServerRequestContext[Any]) -> str:
    """Return the caller's token, which the guard has seen to be one of ours."""
    request: Any = context.request
    return str(request.headers["authorization"]).removeprefix(_BEARER)
