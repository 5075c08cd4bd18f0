"""A gateway of a test's own, as the harness starts it, but as this user and in no slot."""

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import httpx2
import msgspec
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, TextContent

from supervisor.peer import sealed
from tests.serving import ROOT
from thermite.agent.gateway.wire import (
    HEAD,
    Begin,
    Called,
    Caller,
    End,
    Figures,
    Note,
    Ready,
    Server,
    SetUp,
    frame,
    from_gateway,
    length,
)
from thermite.schema.access import SecretHeaders

SERVERS: Final = Path(__file__).with_name("servers.py")
INSIDE_PORT: Final = 8422


def program(kind: str, name: str = "brain") -> Server:
    """A server of `servers.py` that the gateway starts."""
    return Server(name=name, command=[sys.executable, str(SERVERS), kind])


class RunningGateway:
    """One gateway process and all that it has said."""

    def __init__(self, setup: SetUp, folder: Path, letter: int | None = None) -> None:
        self.line, theirs = socket.socketpair()
        code = "import os, sys; os.dup2(int(sys.argv[1]), 4); os.execv(sys.argv[2], sys.argv[2:])"
        argv = [sys.executable, "-P", "-m", "thermite.agent.gateway"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, str(theirs.fileno()), *argv],
            pass_fds=(theirs.fileno(), 4),
            cwd=folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder)},
            stderr=subprocess.PIPE,
        )
        theirs.close()
        self.calls: list[Called] = []
        self.notes: list[str] = []
        socket.send_fds(self.line, [frame(setup)], [] if letter is None else [letter])
        first = self._message()
        assert isinstance(first, Ready), first
        self.port = first.port
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def begin(self, token: str) -> None:
        self.line.sendall(frame(Begin(token=token)))

    def end(self, token: str) -> None:
        self.line.sendall(frame(End(token=token)))

    def ended(self) -> str:
        if self.process.stderr is None or self.process.stderr.closed:
            return ""  # it was ended before
        with contextlib.suppress(OSError):  # it has hung up already
            self.line.shutdown(socket.SHUT_RDWR)  # close alone waits for the thread that reads
        _, said = self.process.communicate(timeout=30)
        self._reader.join(30)
        self.line.close()
        return said.decode()

    def until_told(self, count: int) -> list[Called]:
        """Return the calls once there are so many: a result is there before its report."""
        end = time.monotonic() + 30
        while len(self.calls) < count:
            assert time.monotonic() < end, self.calls
            time.sleep(0.01)
        return self.calls

    def until_noted(self, words: str, count: int = 1) -> list[str]:
        """Return the notes once so many have these words: an answer may be read before them."""
        end = time.monotonic() + 30
        while sum(words in note for note in self.notes) < count:
            assert time.monotonic() < end, self.notes
            time.sleep(0.01)
        return self.notes

    def _listen(self) -> None:
        while (message := self._message()) is not None:
            if isinstance(message, Called):
                self.calls.append(message)
            elif isinstance(message, Note):
                self.notes.append(message.text)

    def _message(self) -> Any:  # noqa: ANN401 - any message, or None
        try:
            head = self.line.recv(HEAD.size, socket.MSG_WAITALL)
            if len(head) < HEAD.size:
                return None
            return from_gateway(self.line.recv(length(head), socket.MSG_WAITALL))
        except OSError:
            return None


@contextlib.contextmanager
def gateway(
    folder: Path,
    servers: list[Server],
    *callers: Caller,
    secrets: Mapping[str, SecretHeaders] | None = None,
    **figures: Any,  # noqa: ANN401
) -> Iterator[RunningGateway]:
    """Run a gateway with these callers, each in an attempt."""
    letter = None if secrets is None else sealed(msgspec.json.encode(secrets))
    setup = SetUp(
        servers=servers,
        callers=list(callers),
        inside_port=INSIDE_PORT,
        path=os.environ["PATH"],
        figures=Figures(**figures),
        has_secrets=letter is not None,
    )
    one = RunningGateway(setup, folder, letter)
    try:
        for caller in callers:
            one.begin(caller.token)
        yield one
    finally:
        if letter is not None:
            os.close(letter)
        one.ended()
        assert one.process.returncode == 0


def worker(token: str = "t-workers", **grants: list[str] | None) -> Caller:
    """A lane's caller."""
    return Caller(token=token, kind="workers", lane=0, grants=grants)


@contextlib.asynccontextmanager
async def agent(port: int, token: str, **headers: str) -> AsyncIterator[Client]:
    """An agent's own client, from the SDK."""
    said = {"authorization": f"Bearer {token}", **headers}
    async with httpx2.AsyncClient(headers=said, timeout=60) as http:
        transport = streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http)
        async with Client(transport) as client:
            yield client


def text(result: CallToolResult) -> str:
    """The words of a result."""
    (part,) = result.content
    assert isinstance(part, TextContent)
    return part.text
