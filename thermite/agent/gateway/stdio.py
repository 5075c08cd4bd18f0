"""One MCP server as a child of the gateway: JSON lines on its standard streams, all bounded.

The SDK's own transport keeps a line of any length and tells of each that is no message. Here a
line has a limit, and what is no message, as a banner, is passed over up to a limit.
Source: agents and control, A9.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

import anyio
import mcp_types as types
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from thermite.agent.gateway.wire import MOST_FRAME

MOST_BANNER_LINES: Final = 1000
"""Lines that are no messages, over a server's whole life (our figure)."""
END_S: Final = 2.0
"""How long a server may take to end once its standard input is closed (our figure)."""
_TAIL: Final = 2000
_SHOWN: Final = 200


class NoServerError(Exception):
    """The program can't be started, or what it says is no MCP."""


@contextlib.asynccontextmanager
async def stdio(
    argv: Sequence[str], env: Mapping[str, str], tail: bytearray
) -> AsyncIterator[TransportStreams]:
    """Start a server and connect to it; at the end its process group is ended.

    Args:
        env: its whole environment; tail: gets the end of what it says on standard error.

    Raises:
        NoServerError: it can't be started.
    """
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=dict(env),
            limit=MOST_FRAME,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise NoServerError(f"cannot start {argv[0][:_SHOWN]!a}: {error}") from None
    into, messages = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, out = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_read, process, into)
        tasks.start_soon(_write, process, out)
        tasks.start_soon(_keep_tail, process, tail)
        try:
            yield messages, outgoing
        finally:
            with anyio.CancelScope(shield=True):
                await _end(process)
            tasks.cancel_scope.cancel()


async def _read(
    process: asyncio.subprocess.Process,
    into: anyio.abc.ObjectSendStream[SessionMessage | Exception],
) -> None:
    """Pass on what a server says, until it ends or says too much that means nothing."""
    banners = 0
    async with into:
        while process.stdout is not None:
            try:
                line = await process.stdout.readline()
            except ValueError:  # longer than the stream's limit
                return
            if not line:
                return
            try:
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                banners += 1
                if banners > MOST_BANNER_LINES:
                    return
                continue
            try:
                await into.send(SessionMessage(message))
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return


async def _write(
    process: asyncio.subprocess.Process, out: anyio.abc.ObjectReceiveStream[SessionMessage]
) -> None:
    async with out:
        async for one in out:
            if process.stdin is None:
                return
            raw = one.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
            try:
                process.stdin.write(raw + b"\n")
                await process.stdin.drain()
            except OSError:
                return  # its end shows where its output is read


async def _keep_tail(process: asyncio.subprocess.Process, tail: bytearray) -> None:
    while process.stderr is not None and (said := await process.stderr.read(1 << 16)):
        tail += said
        del tail[:-_TAIL]


async def _end(process: asyncio.subprocess.Process) -> None:
    """Close a server's input, give it a moment, and end its whole group.

    What it still says is read and forgotten: asyncio sees no end of a process before that.
    """
    if process.stdin is not None:
        process.stdin.close()
    drained = asyncio.gather(*(_drain(one) for one in (process.stdout, process.stderr)))
    try:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), END_S)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
    await drained


async def _drain(stream: asyncio.StreamReader | None) -> None:
    with contextlib.suppress(RuntimeError):  # its own reader is still at it
        while stream is not None and await stream.read(1 << 20):
            pass
