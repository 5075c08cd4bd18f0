"""The names under which agents see tools: `server__tool`, as far as a model's API takes it.

PURE. A name that is too long or has other characters is mapped, two that come to the same are
numbered, and a tool keeps its name as long as the gateway lives.
Source: agents and control, A9; the APIs of models take `[a-zA-Z0-9_-]{1,64}`.
"""

import re
from typing import Final, NamedTuple

MOST: Final = 64
"""Longest name of a tool."""
_OTHER: Final = re.compile(r"[^a-zA-Z0-9_-]")


class Tool(NamedTuple):
    """A tool by its server and by the name that the server gave it."""

    server: str
    name: str


class Names:
    """The names given so far; `notes` says in words what had to be changed."""

    def __init__(self) -> None:
        self._of: dict[Tool, str] = {}
        self._tools: dict[str, Tool] = {}
        self.notes: list[str] = []

    def of(self, tool: Tool) -> str:
        """Return a tool's name, given now when it has none yet."""
        if tool in self._of:
            return self._of[tool]
        plain = f"{tool.server}__{tool.name}"
        wanted = _OTHER.sub("_", plain)[:MOST]
        given, count = wanted, 1
        while given in self._tools:
            count += 1
            given = f"{wanted[: MOST - len(f'_{count}')]}_{count}"
        self._of[tool], self._tools[given] = given, tool
        if given != plain:
            clash = " (another tool has its name)" if count > 1 else ""
            self.notes.append(f"agents see tool {plain[:200]!a} as {given}{clash}")
        return given

    def tool(self, name: str) -> Tool | None:
        """Return the tool that has this name, None when none has."""
        return self._tools.get(name)
