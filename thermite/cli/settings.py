"""`thermite settings`: what control knows of the world, MCP servers and accesses by name."""

import os
from pathlib import Path

import click
import msgspec

from thermite.cli.arguments import PATH, TEXT
from thermite.cli.configured import set_elsewhere
from thermite.cli.control_side import with_home
from thermite.cli.noun import NounGroup
from thermite.cli.output import Output, visible, with_output
from thermite.control.configuration import KEYS, Key, misspelt_variables
from thermite.control.home import ControlHome, control_home
from thermite.control.settings import (
    AccessSetting,
    McpSetting,
    add_access,
    add_server,
    read_settings,
    remove_access,
    remove_server,
)
from thermite.errors import UsageError


@click.group("settings", epilog="Example: thermite settings mcp list")
def command() -> None:
    """Control's settings."""


@command.command("show", epilog="Example: thermite settings show --json")
@click.option("--data", type=PATH, help="As if this were given to a command.")
@click.option("--key", type=PATH, help="As if this were given to a command.")
@click.option("--passphrase-file", type=PATH, help="As if this were given to a command.")
@click.option("--rig", type=TEXT, help="As if this were given to a command.")
@click.option("--state", type=PATH, help="As if this were given to a command.")
@with_output
def show(output: Output, **flags: Path | str | None) -> None:
    """Show what options are set to where they are not given, and by what."""
    rows = [_row(key, flags[key.name]) for key in KEYS.values()]
    for name, near in misspelt_variables(os.environ).items():
        output.warn(f"{name} is no variable of thermite: did you mean {near}?")
    output.document({"settings": rows})
    for row in rows:
        value = "-" if row["value"] is None else row["value"]
        output.result(f"{row['name']}  {value}  ({row['from']})")


def _row(key: Key, flag: Path | str | None) -> dict[str, str | None]:
    found = set_elsewhere(key.name)  # a file that can't be used is refused whatever wins
    if flag is not None:
        return {"name": key.name, "value": str(flag), "from": key.flag}
    if found is not None:
        return {"name": key.name, "value": found.value, "from": found.source}
    value = str(control_home(None, os.environ).root) if key.name == "data" else None
    return {"name": key.name, "value": value, "from": "default"}


@command.group("mcp", cls=NounGroup, epilog="Example: thermite settings mcp list")
def mcp() -> None:
    """MCP servers that kits may name for their campaigns' agents."""


@mcp.command("list", epilog="Example: thermite settings mcp list --json")
@with_home
@with_output
def list_servers(output: Output, *, home: ControlHome) -> None:
    """List the MCP servers by name, with their addresses."""
    servers = read_settings(home).mcp
    rows = [{"name": name, **msgspec.to_builtins(one)} for name, one in servers.items()]
    output.document({"mcp": rows})
    for name, one in servers.items():
        output.result(visible(f"{name}  {_shown(one)}"))
    if not servers:
        output.result("no MCP server is known: add one with thermite settings mcp add NAME")


@mcp.command(
    "add",
    epilog="Example: thermite settings mcp add gbrain --url https://mcp.example.org"
    " --header Authorization=gbrain-token",
)
@click.argument("name", type=TEXT)
@click.option("--url", type=TEXT, help="Its address; without one a rig starts the server itself.")
@click.option(
    "--header",
    "headers",
    type=TEXT,
    multiple=True,
    metavar="HEADER=SECRET",
    help="A header, and the name of the rig's secret that it carries.",
)
@with_home
@with_output
def add(
    output: Output, *, home: ControlHome, name: str, url: str | None, headers: tuple[str, ...]
) -> None:
    """Add the MCP server NAME, as kits name it."""
    server = McpSetting(url=url, headers=dict(map(_header, headers)))
    add_server(home, name, server)
    output.document({"name": name, **msgspec.to_builtins(server)})
    output.result(f"added MCP server {name}: {_shown(server)}")
    for secret in dict.fromkeys(server.headers.values()):
        output.result(f"on each rig: thermite rig access set {secret} --for {server.url}")


@mcp.command("remove", epilog="Example: thermite settings mcp remove gbrain")
@click.argument("name", type=TEXT)
@with_home
@with_output
def remove(output: Output, *, home: ControlHome, name: str) -> None:
    """Take the MCP server NAME out; a kit that names it is then not signed."""
    remove_server(home, name)
    output.document({"name": name})
    output.result(f"removed MCP server {name}")


@command.group("access", cls=NounGroup, epilog="Example: thermite settings access list")
def access() -> None:
    """Names of accesses that rigs have; the secrets are put on the rigs by hand."""


@access.command("list", epilog="Example: thermite settings access list --json")
@with_home
@with_output
def list_accesses(output: Output, *, home: ControlHome) -> None:
    """List the names, and what each is for."""
    known = read_settings(home).access
    output.document({"accesses": [{"name": n, "for": one.place} for n, one in known.items()]})
    for name, one in known.items():
        output.result(visible(f"{name}  for {one.place or 'any address'}"))
    if not known:
        output.result("no access is known: add one with thermite settings access add NAME")


@access.command(
    "add",
    epilog="Example: thermite settings access add work --for https://git.example.org/team",
)
@click.argument("name", type=TEXT)
@click.option(
    "--for", "place", type=TEXT, help="Addresses that it is for begin so, as set on the rig."
)
@with_home
@with_output
def add_an_access(output: Output, *, home: ControlHome, name: str, place: str | None) -> None:
    """Add the access NAME, so that orders may name it."""
    add_access(home, name, AccessSetting(place=place))
    output.document({"name": name, "for": place})
    output.result(f"added access {name}: put its secret on the rig with thermite rig access set")


@access.command("remove", epilog="Example: thermite settings access remove work")
@click.argument("name", type=TEXT)
@with_home
@with_output
def remove_an_access(output: Output, *, home: ControlHome, name: str) -> None:
    """Take the access NAME out; an order that names it is then not signed."""
    remove_access(home, name)
    output.document({"name": name})
    output.result(f"removed access {name}")


def _header(given: str) -> tuple[str, str]:
    header, separator, secret = given.partition("=")
    if not separator:
        raise UsageError(f"--header {given[:80]!a} has no =: write HEADER=SECRET")
    return header, secret


def _shown(server: McpSetting) -> str:
    if server.url is None:
        return "started by each rig"
    headers = ", ".join(f"{header} from secret {s}" for header, s in server.headers.items())
    return server.url + (f" with {headers}" if headers else "")
