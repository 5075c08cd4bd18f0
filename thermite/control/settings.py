"""Control's Settings: the MCP servers of its page Providers, and the names of accesses.

`settings.toml` has one table for each server, `[mcp.<name>]`: an HTTP server with `url` and,
in `headers`, the *names* of secrets that the rig keeps; one that a rig starts itself has none.
`[access.<name>]` names an access to private repositories, whose secret the rig keeps too.
The file is a person's as much as ours, so it is edited by its lines and never written anew:
an edit whose result does not read as it should is refused.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from thermite.control.home import ControlHome
from thermite.control.private_file import read_plain, replace
from thermite.control.toml_text import table
from thermite.errors import KitError, NotFoundError, UsageError
from thermite.schema.access import (
    MOST_HEADERS,
    MOST_URL,
    covers,
    has_credentials,
    header_problem,
    place_of,
)
from thermite.schema.command import McpProvider, Providers, Source
from thermite.schema.contract import McpServer
from thermite.schema.ids import is_name
from thermite.schema.strict import Strict
from thermite.schema.strict_toml import NotToml, read_toml

MOST_BYTES: Final = 1 << 18
"""Most bytes of a settings file, as for rig.toml."""

_SERVER: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}", re.ASCII)
_ADDRESS: Final = re.compile(r"https?://[^\s/@]+(?:/[^\s@]*)?", re.ASCII)


class McpSetting(Strict):
    """One MCP server; headers: header name to secret name."""

    url: str | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)


class AccessSetting(Strict):
    """One access that rigs have; place: addresses that it is for begin so, None for any."""

    place: str | None = msgspec.field(default=None, name="for")


class Settings(Strict):
    """What settings.toml holds."""

    mcp: dict[str, McpSetting] = msgspec.field(default_factory=dict)
    access: dict[str, AccessSetting] = msgspec.field(default_factory=dict)


def read_settings(home: ControlHome) -> Settings:
    """Return control's settings; no file is no settings.

    Raises:
        UsageError: not TOML, an unknown key (with the nearest name), or a wrong value.
    """
    raw = _bytes(home)
    if len(raw) > MOST_BYTES:
        raise UsageError(
            f"{home.settings} has more than {MOST_BYTES} bytes: it is no settings file"
        )
    try:
        found = read_toml(raw)
    except NotToml as error:
        raise UsageError(f"{home.settings} is not TOML: {error}") from None
    for name in found:
        if name not in Settings.__struct_fields__:
            near = difflib.get_close_matches(name, Settings.__struct_fields__, n=1, cutoff=0)
            raise UsageError(f"{home.settings} has {name!a}, which is no setting: {near[0]} is one")
    try:
        return msgspec.convert(found, Settings)
    except msgspec.ValidationError as error:
        raise UsageError(f"{home.settings}: {error}") from None


def add_server(home: ControlHome, name: str, server: McpSetting) -> None:
    """Add an MCP server to the settings; what stands in the file stays as it is.

    Raises:
        UsageError: a name, address or header that is none, or a name that is taken.
    """
    _check_server(name, server)
    parts = [table(("mcp", name), {"url": server.url})]
    if server.headers:
        parts.append(table(("mcp", name, "headers"), server.headers))
    known = read_settings(home)
    _refuse_taken("MCP server", "mcp", name, known.mcp)
    _add(home, "mcp", name, parts, msgspec.structs.replace(known, mcp=known.mcp | {name: server}))


def add_access(home: ControlHome, name: str, access: AccessSetting) -> None:
    """Add the name of an access; its secret is put on each rig by hand.

    Raises:
        UsageError: no name, no place, or a name that is taken.
    """
    if not is_name(name):
        raise UsageError(f"{name[:80]!a} is no name for an access: use a-z, 0-9, '.', '_', '-'")
    if access.place is not None and has_credentials(access.place):
        raise UsageError(
            "--for holds a name or token before the @, and Settings is no place for one: leave"
            " it out here, and give it to thermite rig access set on the rig"
        )
    if access.place is not None and place_of(access.place) is None:
        raise UsageError(
            f"{access.place[:80]!a} is no place of an access: give the beginning of an https or"
            " ssh address, without a password"
        )
    known = read_settings(home)
    _refuse_taken("access", "access", name, known.access)
    parts = [table(("access", name), {"for": access.place})]
    _add(
        home,
        "access",
        name,
        parts,
        msgspec.structs.replace(known, access=known.access | {name: access}),
    )


def remove_server(home: ControlHome, name: str) -> None:
    """Take an MCP server out of the settings, by its lines.

    Raises:
        NotFoundError: there is none of that name.
        UsageError: it stands there in a form that is not taken out by lines.
    """
    known = read_settings(home)
    _refuse_unknown("MCP server", name, known.mcp)
    left = {other: server for other, server in known.mcp.items() if other != name}
    _remove(home, "mcp", name, msgspec.structs.replace(known, mcp=left))


def remove_access(home: ControlHome, name: str) -> None:
    """Take the name of an access out of the settings, by its lines.

    Raises:
        NotFoundError: there is none of that name.
        UsageError: it stands there in a form that is not taken out by lines.
    """
    known = read_settings(home)
    _refuse_unknown("access", name, known.access)
    left = {other: one for other, one in known.access.items() if other != name}
    _remove(home, "access", name, msgspec.structs.replace(known, access=left))


def _refuse_taken(kind: str, section: str, name: str, known: Mapping[str, object]) -> None:
    if name in known:
        raise UsageError(
            f"Settings has an {kind} {name}: take it out first with thermite settings {section}"
            f" remove {name}"
        )


def _refuse_unknown(kind: str, name: str, known: Mapping[str, object]) -> None:
    if name not in known:
        there = f"it has {', '.join(known)}" if known else "it has none"
        raise NotFoundError(f"Settings has no {kind} {name!a}: {there}")


def _add(home: ControlHome, section: str, name: str, parts: list[str], wanted: Settings) -> None:
    text = _bytes(home).decode()
    before = [text.rstrip("\n") + "\n"] if text.strip() else []
    _put(home, section, name, "\n".join(before + parts), wanted)


def _remove(home: ControlHome, section: str, name: str, wanted: Settings) -> None:
    kept, ours = [], False
    for line in _bytes(home).decode().splitlines(keepends=True):
        if line.lstrip().startswith("["):
            ours = _is_table_of(line, section, name)
        if not ours:
            kept.append(line)
    _put(home, section, name, "".join(kept), wanted)


def _bytes(home: ControlHome) -> bytes:
    """Return the settings file's bytes, at most one more than may be; none for no file."""
    return read_plain(home.settings, most_bytes=MOST_BYTES) or b""


def _check_server(name: str, server: McpSetting) -> None:
    if not _SERVER.fullmatch(name):
        raise UsageError(
            f"{name[:80]!a} is no name for an MCP server: use a-z, 0-9 and dash, at most 64"
        )
    url = server.url
    if url is not None and (not _ADDRESS.fullmatch(url) or len(url) > MOST_URL):
        raise UsageError(
            f"{url[:80]!a} is no address of an MCP server: give http:// or https:// without a user"
            " or password; a header names the secret that the rig keeps"
        )
    if server.headers and url is None:
        raise UsageError("headers are for a server with an address: give --url too")
    if server.headers and place_of(str(url).partition("?")[0]) is None:
        raise UsageError(
            f"{str(url)[:80]!a} is no address that a rig sends a secret to: give https://, or"
            " http://127.0.0.1 for a server on the rig itself"
        )
    if len(server.headers) > MOST_HEADERS:
        raise UsageError(f"{len(server.headers)} headers: at most {MOST_HEADERS} are sent")
    for header, secret in server.headers.items():
        if (problem := header_problem(header, secret)) is not None:
            raise UsageError(problem)


def _is_table_of(line: str, section: str, name: str) -> bool:
    """Return whether a line begins a table of one MCP server or access."""
    try:
        begun = read_toml(line.encode())
    except NotToml:
        return False
    tables = begun.get(section)
    return isinstance(tables, dict) and list(tables) == [name]


def _put(home: ControlHome, section: str, name: str, text: str, wanted: Settings) -> None:
    """Replace the file by a text that must read as wanted."""
    try:
        reads = msgspec.convert(read_toml(text.encode()), Settings)
    except (NotToml, msgspec.ValidationError):
        reads = None
    if reads != wanted:
        raise UsageError(
            f"{home.settings} has {section} in a form that is not edited by lines: write or take"
            f" out [{section}.{name}] by hand"
        )
    home.make()
    replace(home.settings, text.encode())


def check_access(settings: Settings, source: Source | None) -> None:
    """Refuse a source whose access control does not know, or which is for other addresses.

    Raises:
        UsageError: by whoever assigns.

    Source: ledger and signing, 3.9 "Access".
    """
    if source is None or source.access is None or source.git is None:
        return
    known = settings.access.get(source.access)
    if known is None:
        raise UsageError(
            f"Settings has no access {source.access[:80]!a}: add it with thermite settings access"
            f" add, or name one of {', '.join(settings.access) or 'none'}"
        )
    if known.place is not None and not covers(known.place, source.git):
        raise UsageError(
            f"access {source.access} is for {known.place}, and the rig is to fetch from"
            f" {source.git[:200]}"
        )


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
