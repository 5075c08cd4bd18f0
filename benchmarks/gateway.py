"""What the gateway adds to a tool call: an agent's call straight to a server, and through it.

Both sides are real and speak through the official SDK: the server is a program of the rig's
owner (stdio), the agent a client. `direct` starts that server itself, as an agent without a
gateway would; `through` reaches it over the gateway's HTTP on loopback. The two take turns, call
by call, in one run, so that a busy machine slows both. The gateway runs as this user and in no
slot, which the costs of a call do not know.

Aim: at most 15 ms median through the gateway. `gateway.py [--calls N]`
"""

import argparse
import asyncio
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

try:
    import httpx2
    from mcp import StdioServerParameters
    from mcp.client.client import Client
    from mcp.client.stdio import stdio_client
    from mcp.client.streamable_http import streamable_http_client
except ImportError as error:
    sys.exit(f"{error}: pip install 'thermite-rig[mcp]'")

from thermite.agent.gateway.wire import (
    HEAD,
    Begin,
    Caller,
    Ready,
    Server,
    SetUp,
    frame,
    from_gateway,
    length,
)

ROOT: Final = Path(__file__).parents[1]
CALLS: Final = 200
WARM_UP: Final = 10
AIM_MS: Final = 15.0
"""agents and control, A12: gateway call over stdio, median."""
TOKEN: Final = "benchmark"  # noqa: S105 - of a gateway on loopback that ends with this run
SERVER: Final = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("bench")
@server.tool()
def echo(text: str) -> str:
    return text
server.run("stdio")
"""


class Gateway:
    """A gateway process with one server and one caller in an attempt."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.line, theirs = socket.socketpair()
        code = "import os, sys; os.dup2(int(sys.argv[1]), 4); os.execv(sys.argv[2], sys.argv[2:])"
        argv = [sys.executable, "-P", "-m", "thermite.agent.gateway"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, str(theirs.fileno()), *argv],
            pass_fds=(theirs.fileno(), 4),
            cwd=folder,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder)},
        )
        theirs.close()
        caller = Caller(token=TOKEN, kind="workers", lane=0, grants={"bench": None})
        server = Server(name="bench", command=command)
        setup = SetUp(servers=[server], callers=[caller], inside_port=1, path=os.environ["PATH"])
        self.line.sendall(frame(setup))
        first = from_gateway(self._read(length(self._read(HEAD.size))))
        if not isinstance(first, Ready):
            raise TypeError(f"the gateway says {first}")
        self.port = first.port
        self.line.sendall(frame(Begin(token=TOKEN, calls=-(1 << 30))))  # no limit of calls

    def _read(self, size: int) -> bytes:
        raw = self.line.recv(size, socket.MSG_WAITALL)
        if len(raw) < size:
            raise RuntimeError("the gateway has ended")
        return raw

    def close(self) -> None:
        """Hang up and wait for its end."""
        self.line.close()
        self.process.wait(30)


@asynccontextmanager
async def direct(command: list[str]) -> AsyncIterator[Client]:
    """A client whose server is its own child."""
    wanted = StdioServerParameters(command=command[0], args=command[1:])
    async with Client(stdio_client(wanted)) as client:
        yield client


@asynccontextmanager
async def through(port: int) -> AsyncIterator[Client]:
    """A client of the gateway."""
    said = {"authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(headers=said, timeout=60) as http:
        url = f"http://127.0.0.1:{port}/mcp"
        async with Client(streamable_http_client(url, http_client=http)) as client:
            yield client


async def timed(client: Client, tool: str) -> float:
    """Return how long one call takes, ms."""
    start = time.perf_counter()
    result = await client.call_tool(tool, {"text": "x" * 200})
    spent = 1e3 * (time.perf_counter() - start)
    if result.is_error:
        raise RuntimeError(f"the call of {tool} failed: {result.content}")
    return spent


async def measure(calls: int, command: list[str], port: int) -> tuple[list[float], list[float]]:
    """Return the times of both sides, ms, call by call in turns."""
    async with direct(command) as here, through(port) as there:
        pairs = [
            (await timed(here, "echo"), await timed(there, "bench__echo"))
            for _ in range(WARM_UP + calls)
        ]
    first, second = zip(*pairs[WARM_UP:], strict=True)
    return list(first), list(second)


def row(name: str, times: list[float]) -> str:
    """Return a line of the table."""
    p95 = statistics.quantiles(times, n=20)[-1]
    return f"{name:<20} {statistics.median(times):6.1f} ms median {p95:6.1f} ms p95"


def main(argv: list[str]) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=CALLS)
    calls = parser.parse_args(argv).calls
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "server.py"
        program.write_text(SERVER, encoding="utf-8")
        command = [sys.executable, str(program)]
        gateway = Gateway(Path(folder), command)
        try:
            straight, over = asyncio.run(measure(calls, command, gateway.port))
        finally:
            gateway.close()
    print(f"{calls} calls of one tool, in turns")
    print(row("straight, stdio", straight))
    print(row("through the gateway", over))
    kept = "kept" if statistics.median(over) <= AIM_MS else "MISSED"
    print(f"aim <= {AIM_MS:.0f} ms median: {kept}; load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
