"""Which MCP servers a campaign's workers get, which of their tools, and where the servers are.

PURE. Source: agents and control, A9.
"""

from collections.abc import Mapping

from thermite.agent.brief import CALLS_TOOLS
from thermite.agent.gateway.wire import Server
from thermite.campaign.state import Assignment
from thermite.schema.command import McpProvider
from thermite.schema.rig_settings import McpProgram


def needs_gateway(assignment: Assignment) -> bool:
    """Return whether the campaign has agents that are processes, and tools for them."""
    backend = assignment.contract.agents.workers.backend
    return backend in CALLS_TOOLS and bool(granted(assignment))


def granted(assignment: Assignment) -> dict[str, list[str] | None]:
    """Return the servers that workers get, each with its tools, None for all that it lists."""
    return {
        one.name: (one.tools or {}).get("workers")
        for one in assignment.mcp_servers or []
        if "workers" in one.agents
    }


def servers_of(assignment: Assignment, programs: Mapping[str, McpProgram]) -> list[Server]:
    """Return where the workers' servers are: the rig owner's programs, else Settings' addresses."""
    urls = {one.name: one.url for one in assignment.mcp_providers}
    return [
        Server(name=name, command=programs[name].command)
        if name in programs
        else Server(name=name, url=urls.get(name))
        for name in granted(assignment)
        if name in programs or name in urls
    ]


def addressed(assignment: Assignment) -> list[McpProvider]:
    """Return the servers that the order gives an address, each once: the last word counts."""
    return list({one.name: one for one in assignment.mcp_providers}.values())
