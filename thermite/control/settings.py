"""Control's Settings: so far the MCP servers of its page Providers.

`settings.toml` has one table for each, `[mcp.<name>]`: an HTTP server with `url` and, in
`headers`, the *names* of secrets that the rig keeps; one that a rig starts itself has none.
"""

import difflib
import tomllib
from collections.abc import Sequence
from typing import Final

import msgspec

from thermite.control.home import ControlHome
from thermite.errors import KitError, UsageError
from thermite.schema.command import McpProvider, Providers
from thermite.schema.contract import McpServer
from thermite.schema.strict import Strict

MOST_BYTES: Final = 1 << 18
"""Most bytes of a settings file, as for rig.toml."""


class McpSetting(Strict):
    """One MCP server; headers: header name to secret name."""

    url: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class Settings(Strict):
    """What settings.toml holds."""

    mcp: dict[str, McpSetting] = msgspec.field(default_factory=dict)


def read_settings(home: ControlHome) -> Settings:
    """Return control's settings; no file is no settings.

    Raises:
        UsageError: not TOML, an unknown key (with the nearest name), or a wrong value.
    """
    try:
        raw = home.settings.read_bytes()
    except FileNotFoundError:
        return Settings()
    if len(raw) > MOST_BYTES:
        raise UsageError(
            f"{home.settings} has more than {MOST_BYTES} bytes: it is no settings file"
        )
    try:
        found = tomllib.loads(raw.decode())
    except ValueError as error:
        raise UsageError(f"{home.settings} is not TOML: {error}") from None
    for name in found:
        if name not in Settings.__struct_fields__:
            near = difflib.get_close_matches(name, Settings.__struct_fields__, n=1, cutoff=0)
            raise UsageError(f"{home.settings} has {name!a}, which is no setting: {near[0]} is one")
    try:
        return msgspec.convert(found, Settings)
    except msgspec.ValidationError as error:
        raise UsageError(f"{home.settings}: {error}") from None


def check_servers(settings: Settings, servers: Sequence[McpServer]) -> None:
    """Refuse a kit that names an MCP server which Settings does not have.

    Raises:
        KitError: to the letter as the Kit manifest has it, for the first such server.

    Source: the reference page "Kit manifest", MCP servers.
    """
    for server in servers:
        if server.name not in settings.mcp:
            raise KitError(
                f"The kit names the MCP server {server.name}, and Settings has no server of that"
                f" name. Add an MCP server named {server.name} in Settings \u203a Providers, or"
                " take it out of the kit. Then start the campaign again."
            )


def providers(settings: Settings, servers: Sequence[McpServer]) -> Providers:
    """Return what the rig must know to reach those of the servers that speak HTTP."""
    found = []
    for server in servers:
        setting = settings.mcp[server.name]
        if setting.url is not None:
            found.append(McpProvider(name=server.name, url=setting.url, headers=setting.headers))
    return Providers(mcp=found)
