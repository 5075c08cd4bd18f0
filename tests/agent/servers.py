"""MCP servers that tests start, with the official SDK: `python servers.py KIND [PORT]`.

Each KIND is one way for a server to be: well, slow, dying, talking too much, changing.
"""

import os
import sys
import time

from mcp.server.mcpserver import MCPServer


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
    server = brain()
    if kind == "http":
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run("stdio")


if __name__ == "__main__":
    main()
