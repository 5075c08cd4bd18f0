"""The process: `python -m thermite.agent.gateway`, started by the spawner in slot `gateway-i`.

Descriptor 4 leads to the harness. The first message says who may call what; then the gateway
listens, tells its port, and serves until the harness hangs up. Exit codes: 0 hung up, 1 a
message that is none, 2 the extra `mcp` is not installed.
"""

import asyncio
import contextlib
import ctypes
import logging
import os
import socket
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Final, NoReturn

import msgspec

try:
    from thermite.agent.gateway.calls import Calls
    from thermite.agent.gateway.serve import HOST, Doors
    from thermite.agent.gateway.upstream import Upstream
except ImportError as error:
    sys.stderr.write(f"gateway: {error}: install thermite-rig[mcp] on the rig\n")
    sys.exit(2)
from thermite.agent.gateway.wire import (
    HEAD,
    Begin,
    Called,
    End,
    Note,
    Ready,
    SetUp,
    ToGateway,
    frame,
    length,
    secret_headers,
    to_gateway,
)
from thermite.schema.access import SecretHeaders

HARNESS_FD: Final = 4
"""As `thermite.rig.stages.HANDED_FD`, which this process must not need."""
END_S: Final = 3.0
"""How long servers may take to end once the harness has hung up (our figure)."""
_MOST_FDS: Final = 4
_PR_SET_DUMPABLE: Final = 4  # include/uapi/linux/prctl.h
_READ: Final = 1 << 16


class Harness:
    """The line to the harness."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._fds: list[int] = []
        self._heard = bytearray()
        self._turn = asyncio.Lock()

    async def say(self, message: Ready | Called | Note) -> None:
        """Tell something; in whole messages, whoever says them."""
        async with self._turn:
            await asyncio.get_running_loop().sock_sendall(self._line, frame(message))

    async def hear(self) -> ToGateway | None:
        """Return the next message, None when the harness has hung up.

        Raises:
            ValueError: what came is no message.
        """
        while True:
            if len(self._heard) >= HEAD.size:
                size = length(bytes(self._heard[: HEAD.size]))
                if len(self._heard) >= HEAD.size + size:
                    raw = bytes(self._heard[HEAD.size : HEAD.size + size])
                    del self._heard[: HEAD.size + size]
                    return to_gateway(raw)
            if not await self._read():
                return None

    async def _read(self) -> bool:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        loop.add_reader(self._line.fileno(), _settle(ready))
        try:
            await ready
        finally:
            loop.remove_reader(self._line.fileno())
        raw, fds, _, _ = socket.recv_fds(self._line, _READ, _MOST_FDS, socket.MSG_CMSG_CLOEXEC)
        self._heard += raw
        self._fds += fds
        return bool(raw)

    def listener(self) -> socket.socket:
        """Return the listener that came beside the last message.

        Raises:
            ValueError: none did.
        """
        return socket.socket(fileno=self._descriptor("listener"))

    def secrets(self) -> dict[str, SecretHeaders]:
        """Return what servers are sent, from the memory file that came beside the last message.

        Before it is open in this process's memory, no other process of the user may look there:
        servers that are programs of the rig's owner are of the same user.

        Raises:
            ValueError: none came, or it holds something else.
        """
        hide_memory()
        descriptor = self._descriptor("memory file")
        try:
            raw = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        finally:
            os.close(descriptor)
        return secret_headers(raw)

    def _descriptor(self, what: str) -> int:
        if not self._fds:
            raise ValueError(f"no {what} came beside the message that says so")
        return self._fds.pop(0)


def hide_memory() -> None:
    """Let nobody of this user read this process's memory, files or core.

    Source: prctl(2), PR_SET_DUMPABLE; ptrace(2), "Ptrace access mode checking".
    """
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE) failed")


def _settle(ready: asyncio.Future[None]) -> Callable[[], None]:
    def settle() -> None:
        if not ready.done():
            ready.set_result(None)

    return settle


async def serve(harness: Harness) -> None:
    """Serve one campaign until the harness hangs up.

    Raises:
        ValueError: the harness says what it must not.
    """
    wanted = await harness.hear()
    if not isinstance(wanted, SetUp):
        raise TypeError("the first message sets up")

    async def note(text: str) -> None:
        await harness.say(Note(text=text))

    secrets = harness.secrets() if wanted.has_secrets else {}
    upstreams = {
        one.name: Upstream(one, wanted.path, note, secrets.get(one.name)) for one in wanted.servers
    }
    callers = {one.token: one for one in wanted.callers}
    calls = Calls(callers, upstreams, wanted.figures, harness.say)
    listener = _listener(wanted.port)
    port = listener.getsockname()[1]
    doors = Doors(calls, callers, (port, wanted.inside_port))
    async with doors.running():
        tasks = [asyncio.create_task(one.run()) for one in upstreams.values()]
        tasks.append(doors.open(listener))
        await harness.say(Ready(port=port))
        await _follow(harness, calls, doors)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=END_S)  # the spawner ends what is left


def _listener(port: int) -> socket.socket:
    """Listen on a port, or on any if it is another one's by now."""
    try:
        return socket.create_server((HOST, port))
    except OSError:
        return socket.create_server((HOST, 0))


async def _follow(harness: Harness, calls: Calls, doors: Doors) -> None:
    """Do what the harness says, attempt by attempt."""
    inside: dict[str, asyncio.Task[None]] = {}
    while (message := await harness.hear()) is not None:
        match message:
            case Begin(token=token, has_listener=has_listener):
                calls.begin(token, message.calls)
                if has_listener:
                    inside[token] = doors.open(harness.listener())
            case End(token=token):
                calls.end(token)
                if token in inside:
                    inside.pop(token).cancel()
            case SetUp():
                raise ValueError("it was set up already")
    for task in inside.values():
        task.cancel()


async def main() -> NoReturn:
    """Run the process and end it, whatever its servers still do."""
    _say_little()
    line = socket.socket(fileno=HARNESS_FD)
    line.settimeout(0)
    code = 0
    try:
        await serve(Harness(line))
    except* (ValueError, TypeError, msgspec.DecodeError) as wrong:
        sys.stderr.write(f"gateway: {_first(wrong)}\n")
        code = 1
    except* ConnectionError:
        pass  # the harness is gone, and the spawner ends whatever is left here
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


def _say_little() -> None:
    """Let no library's log and no traceback write: they quote what servers say, unhidden."""

    def only_its_name(
        kind: type[BaseException], _: BaseException, __: TracebackType | None
    ) -> None:
        sys.stderr.write(f"gateway: {kind.__name__}\n")

    logging.disable()
    sys.excepthook = only_its_name


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


if __name__ == "__main__":
    asyncio.run(main())
