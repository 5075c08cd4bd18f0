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
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

try:
    from mcp import StdioServerParameters
    from mcp.client.client import Client
    from mcp.client.stdio import stdio_client

    from tests.agent.gateway_process import agent, gateway
except ImportError as error:
    sys.exit(f"{error}: pip install 'thermite-rig[mcp]'")

from thermite.agent.gateway.wire import Caller, Server

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


@asynccontextmanager
async def direct(command: list[str]) -> AsyncIterator[Client]:
    """A client whose server is its own child."""
    wanted = StdioServerParameters(command=command[0], args=command[1:])
    async with Client(stdio_client(wanted)) as client:
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
    async with direct(command) as here, agent(port, TOKEN) as there:
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
        server = Server(name="bench", command=command)
        caller = Caller(token=TOKEN, kind="workers", lane=0, grants={"bench": None})
        most = WARM_UP + calls
        with gateway(Path(folder), [server], caller, calls=most) as one:
            straight, over = asyncio.run(measure(calls, command, one.port))
    print(f"{calls} calls of one tool, in turns")
    print(row("straight, stdio", straight))
    print(row("through the gateway", over))
    kept = "kept" if statistics.median(over) <= AIM_MS else "MISSED"
    print(f"aim <= {AIM_MS:.0f} ms median: {kept}; load average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main(sys.argv[1:])
