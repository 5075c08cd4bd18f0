"""A real MCP server over https that lets in only who sends a header, and counts who tried."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.agent.gateway_process import SERVERS
from tests.supervisor.forge import certificate


class Guarded(NamedTuple):
    """Where it is, and the certificate to trust."""

    url: str
    pem: str


@contextlib.contextmanager
def guarded(folder: Path, secret: str) -> Iterator[Guarded]:
    """Run one on this machine."""
    folder.mkdir(exist_ok=True)
    pem = certificate(folder)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(SERVERS), "guarded", str(port), str(pem)],
        stdin=subprocess.PIPE,
    )
    try:
        if process.stdin is not None:
            process.stdin.write(f"{secret}\n".encode())
            process.stdin.close()
        _wait_for(port, process)
        yield Guarded(f"https://127.0.0.1:{port}/mcp", pem.read_text())
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int, process: "subprocess.Popen[bytes]") -> None:
    end = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise AssertionError("the guarded server does not start")
