"""MCP servers that tests start, with the official SDK: `python servers.py KIND [PORT]`.

Each KIND is one way for a server to be: well, slow, dying, talking too much, changing.
"""

import os
import sys
import time
from pathlib import Path

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from starlette.types import Receive, Scope, Send


def brain() -> MCPServer:  # noqa: C901 - tool after tool
    """A server whose tools work."""
    server = MCPServer("brain")

    @server.tool()
    def search_code(text: str) -> str:
        """Find something."""
        return f"found {text}"

    @server.tool()
    def secret() -> str:
        """For advisors."""
        return "only advisors read this"

    @server.tool()
    def huge(size: int) -> str:
        """Return so many characters."""
        return "é" * size

    @server.tool()
    def slow(seconds: float) -> str:
        """Take its time."""
        time.sleep(seconds)
        return "at last"

    @server.tool()
    def dies() -> str:
        """End the whole server."""
        os._exit(3)

    @server.tool()
    def boom() -> str:
        """Fail as a tool does."""
        raise ValueError("what it was")

    @server.tool(name="dots.and spaces")
    def odd() -> str:
        """Be named so that no model's API takes it."""
        return "odd"

    @server.tool(name="dots_and.spaces")
    def odd_too() -> str:
        """Come to the same name."""
        return "odd too"

    @server.tool(name="n" * 100)
    def long_name() -> str:
        """Be named too long."""
        return "long"

    @server.tool()
    def grow() -> str:
        """Have one tool more from now on."""

        @server.tool()
        def grown() -> str:
            return "grown"

        return "more"

    @server.tool()
    def environment() -> str:
        """Tell the names of variables."""
        return " ".join(sorted(os.environ))

    return server


def guarded(port: int, pem: str) -> None:
    """Serve over https whoever sends the header `X-Key` with the line on standard input.

    A request without it is 401; `repeat` tells the secret, and its word in another form.
    """
    server, secret = brain(), sys.stdin.readline().rstrip("\n")

    @server.tool()
    def repeat() -> dict[str, list[str]]:
        """Repeat what was sent."""
        return {f"key {secret}": [secret, f"<{secret.split()[-1]}>", "and no more"]}

    @server.tool()
    def blurt() -> str:
        """Fail with what was sent."""
        raise ToolError(f"no: {secret}")

    app = server.streamable_http_app(json_response=True, stateless_http=True)

    async def guard(scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", ())).get(b"x-key", b"").decode()
        if scope["type"] == "http" and given != secret:
            await send({"type": "http.response.start", "status": 401, "headers": []})
            await send({"type": "http.response.body", "body": f"not {given}".encode()})
            return
        await app(scope, receive, send)

    key = str(Path(pem).with_suffix(".key"))
    uvicorn.run(guard, port=port, ssl_certfile=pem, ssl_keyfile=key, log_level="critical")


def main() -> None:
    """Serve as the arguments say."""
    kind = sys.argv[1]
    if kind == "banner":
        for number in range(100):
            sys.stdout.write(f"welcome {number} {{not json}}\n")
    elif kind == "flood":
        while True:
            sys.stdout.write("nothing but talk\n")
    elif kind == "endless":
        while True:
            sys.stdout.write("x" * 65536)
    elif kind == "dead":
        sys.exit("no licence key")
    if kind == "guarded":
        guarded(int(sys.argv[2]), sys.argv[3])
        return
    server = brain()
    if kind == "http":
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run("stdio")


if __name__ == "__main__":
    main()
