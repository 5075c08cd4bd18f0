"""The rules of a list of MCP servers, in a kit and in a research contract alike.

Source: the reference page "Kit manifest", MCP servers.
"""

from collections.abc import Iterator
from typing import Any

from thermite.schema.contract import McpServer
from thermite.schema.document import Path


def server_problems(servers: Any, path: Path) -> Iterator[tuple[Path, str]]:  # noqa: ANN401
    """Yield what is wrong across the fields of a list of servers, as it stands in a document."""
    seen: set[str] = set()
    for index, server in enumerate(servers if isinstance(servers, list) else []):
        if not isinstance(server, dict):
            continue
        here = (*path, index)
        name = server.get("name")
        if isinstance(name, str):
            if name in seen:
                yield (*here, "name"), f"{name} is named twice"
            seen.add(name)
        yield from _kinds(server.get("agents"), here)
        yield from _tools(server, here)


def _kinds(agents: Any, here: Path) -> Iterator[tuple[Path, str]]:  # noqa: ANN401
    for at, kind in enumerate(agents if isinstance(agents, list) else []):
        if isinstance(kind, str) and kind in agents[:at]:
            yield (*here, "agents", at), f"{kind} stands twice"


def _tools(server: dict[str, Any], here: Path) -> Iterator[tuple[Path, str]]:
    tools, agents = server.get("tools"), server.get("agents")
    for kind, names in tools.items() if isinstance(tools, dict) else ():
        known = kind in {"workers", "planner", "advisors"}
        if known and isinstance(agents, list) and kind not in agents:
            yield (
                (*here, "tools", kind),
                f"the {kind} do not get this server: add {kind} to agents, or take out its tools",
            )
        for at, name in enumerate(names if isinstance(names, list) else []):
            if name == "":
                yield (*here, "tools", kind, at), "a tool's name is not empty"


def tidy(server: McpServer) -> McpServer:
    """Return a server with each tool once, and with no tools where it narrows nothing (D19)."""
    tools = {kind: list(dict.fromkeys(names)) for kind, names in (server.tools or {}).items()}
    return McpServer(name=server.name, agents=server.agents, tools=tools or None)
