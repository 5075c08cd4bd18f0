"""What one caller may see and call, and how a call goes: counted, bounded, told.

A caller's tools are its kind's grant and what the servers list. Whatever is wrong with a call
is the tool's error; the agent reads it and goes on. Source: agents and control, A9; Kit
manifest, MCP servers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult
from mcp_types import Tool as Listed

from thermite.agent.gateway.names import Names, Tool
from thermite.agent.gateway.result import cut, failure
from thermite.agent.gateway.upstream import UnreachableError, Upstream
from thermite.agent.gateway.wire import MOST_WHOLE, Called, Caller, Figures, Note

_SHOWN: Final = 200
"""Characters of an unknown tool's name that are told."""


@dataclass
class Attempt:
    """The attempt that a caller is in: how often it has called."""

    calls: int = 0


class Calls:
    """All callers of one gateway and all servers.

    Args:
        say: tells the harness.
    """

    def __init__(
        self,
        callers: Mapping[str, Caller],
        upstreams: Mapping[str, Upstream],
        figures: Figures,
        say: Callable[[Called | Note], Awaitable[None]],
    ) -> None:
        self._callers, self._upstreams, self._figures = callers, upstreams, figures
        self._say = say
        self._names = Names()
        self._attempts: dict[str, Attempt] = {}

    def begin(self, token: str, calls: int) -> None:
        """Let a caller call: its attempt is under way, and has made so many calls."""
        self._attempts[token] = Attempt(calls)

    def end(self, token: str) -> None:
        """Let this caller call nothing until its next attempt."""
        self._attempts.pop(token, None)

    async def tools(self, token: str) -> list[Listed]:
        """Return what a caller sees, under the names that it calls by."""
        caller = self._callers[token]
        found = await self._granted(caller)
        shown = [
            listed.model_copy(
                update={"name": self._names.of(tool), "output_schema": None, "meta": None}
            )
            for tool, listed in found.items()
        ]
        await self._tell_names()
        return shown

    async def call(self, token: str, name: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Make one call for a caller; what is wrong with it is an error for the agent to read."""
        began = asyncio.get_running_loop().time()
        told = await self._called(token, name, arguments)
        spent = asyncio.get_running_loop().time() - began
        seen = cut(told.result, self._figures.result_bytes)
        whole, outcome = seen.whole, told.outcome
        if seen.size > MOST_WHOLE:
            said = f"the result has {seen.size} bytes: at most {MOST_WHOLE} are taken"
            seen = seen._replace(result=failure(said))
            whole, outcome = None, "too_large"
        report = Called(
            token=token,
            server=told.tool.server,
            tool=told.tool.name,
            ms=round(spent * 1000),
            outcome=outcome,
            size=seen.size,
            whole=whole,
        )
        await self._say(report)
        return seen.result

    async def _called(self, token: str, name: str, arguments: Mapping[str, Any]) -> "_Told":
        caller, attempt = self._callers[token], self._attempts.get(token)
        unknown = Tool("", name[:_SHOWN])
        if attempt is None:
            return _Told(unknown, "refused", failure("no attempt of yours is under way"))
        attempt.calls += 1
        tool = self._names.tool(name)
        if tool is None:  # nothing was listed yet, or the server has it since
            await self._everything()
            tool = self._names.tool(name)
        if attempt.calls > self._figures.calls:
            said = f"this attempt has made its {self._figures.calls} tool calls"
            return _Told(tool or unknown, "limit", failure(said))
        if tool is None or not _is_granted(caller, tool):
            shown = f"{name[:_SHOWN]!a}"
            said = f"the {caller.kind} have no tool {shown}: call one that tools/list names"
            return _Told(tool or unknown, "refused", failure(said))
        return await self._forwarded(tool, arguments)

    async def _forwarded(self, tool: Tool, arguments: Mapping[str, Any]) -> "_Told":
        most_s = self._figures.call_s
        try:
            result = await self._upstreams[tool.server].call(tool.name, arguments, most_s)
        except TimeoutError:
            said = f"{tool.name} of server {tool.server} took longer than {most_s:g} s"
            return _Told(tool, "timeout", failure(said))
        except UnreachableError as error:
            said = f"server {tool.server} can't be reached: {error}"
            return _Told(tool, "unreachable", failure(said))
        except MCPError as error:
            said = self._upstreams[tool.server].hidden.out_of(str(error))
            return _Told(tool, "error", failure(f"server {tool.server}: {said}"))
        except Exception as error:  # noqa: BLE001 - whatever an SDK makes of a server's words
            said = f"server {tool.server}: {type(error).__name__}"
            return _Told(tool, "error", failure(said))
        return _Told(tool, "error" if result.is_error else "ok", result)

    async def _granted(self, caller: Caller) -> dict[Tool, Listed]:
        every = await self._everything(caller.grants)
        return {tool: listed for tool, listed in every.items() if _is_granted(caller, tool)}

    async def _everything(self, servers: Mapping[str, object] | None = None) -> dict[Tool, Listed]:
        """Return the servers' tools, each with a name; of all servers unless told which."""
        wanted = [u for u in self._upstreams.values() if servers is None or u.name in servers]
        lists = await asyncio.gather(*(one.tools() for one in wanted))
        found = {
            Tool(one.name, listed.name): listed
            for one, tools in zip(wanted, lists, strict=True)
            for listed in tools
        }
        for tool in found:
            self._names.of(tool)
        await self._tell_names()
        return found

    async def _tell_names(self) -> None:
        notes, self._names.notes = self._names.notes, []
        for text in notes:
            await self._say(Note(text=text))


@dataclass(frozen=True)
class _Told:
    """How a call went: whose it was, the word for it, and what the agent gets."""

    tool: Tool
    outcome: Any
    result: CallToolResult


def _is_granted(caller: Caller, tool: Tool) -> bool:
    if tool.server not in caller.grants:
        return False
    named = caller.grants[tool.server]
    return named is None or tool.name in named
