"""`rig.toml`: what the owner of a rig sets. Source: the reference page "Files of a rig"."""

import difflib
import re
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from thermite.errors import UsageError
from thermite.schema.access import check_key_command
from thermite.schema.ids import is_name
from thermite.schema.strict import Strict
from thermite.schema.strict_toml import NotToml, read_toml

SERVER_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
"""Kit manifest, MCP servers: what a kit can name."""
MAX_BYTES = 1 << 18
"""A settings file of more than 256 KiB is a mistake (our figure)."""


class Slots(Strict):
    """How many slots of a kind a rig has."""

    builders: int = 1
    runs: int = 1
    workers: int = 1
    gateways: int = 1


class McpProgram(Strict):
    """An MCP server that the rig starts for campaigns whose kit names it.

    command: its argv; reads: folders beside the system's that it needs, where files are kept
    from stages.
    """

    command: Annotated[list[str], msgspec.Meta(min_length=1)]
    reads: list[str] = msgspec.field(default_factory=list)


SelftestMode: TypeAlias = Literal["full", "short"]


class RigSettings(Strict):
    """A rig's settings; every field may be left out.

    selftest: the first campaign's after a reboot or a change of kernel or driver;
    cpus: the run set, or None for the last CPU; bundle_max_mib, model_max_mib: MiB;
    agents_share: least share of the wall time that agents get while they are at work;
    key_command: argv of a program that prints the secret of the access `{name}`.
    """

    name: str = "rig"
    target: Literal["cpu", "cuda-gpu"] = "cpu"
    slots: Slots = msgspec.field(default_factory=Slots)
    cards: list[str] = msgspec.field(default_factory=list)
    cpus: list[int] | None = None
    stage_path: str = "/usr/local/bin:/usr/bin:/bin"
    realtime_runs: bool = False
    selftest: SelftestMode = "full"
    agents_during_timing: Literal["frozen", "elsewhere"] = "frozen"
    agents_share: float = 0.25
    allow_file_sources: bool = False
    control_url: str | None = None
    lock_clocks: str | int = "none"
    bundle_max_mib: int = 4096
    model_max_mib: int = 65536
    key_command: list[str] | None = None
    agents: dict[str, Any] = msgspec.field(default_factory=dict)
    budget: dict[str, Any] = msgspec.field(default_factory=dict)
    mcp: dict[str, McpProgram] = msgspec.field(default_factory=dict)


def read_rig_settings(raw: bytes, where: str) -> RigSettings:
    """Return the settings that a rig.toml holds.

    Args:
        where: the file's name, for messages.

    Raises:
        UsageError: not TOML, an unknown key (with the nearest name), or a wrong value.
    """
    if len(raw) > MAX_BYTES:
        raise UsageError(f"{where} has {len(raw)} bytes: at most {MAX_BYTES} are read")
    try:
        table = read_toml(raw)
    except NotToml as error:
        raise UsageError(f"{where} is not TOML: {error}") from None
    _refuse_unknown(table, where)
    try:
        settings = msgspec.convert(table, RigSettings)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}") from error
    if not is_name(settings.name):
        raise UsageError(f"{where}: name is {settings.name!r}: use a-z, 0-9, '.', '_', '-'")
    _check_programs(settings.mcp, where)
    try:
        if settings.key_command is not None:
            check_key_command(settings.key_command)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return settings


def _check_programs(programs: dict[str, McpProgram], where: str) -> None:
    for name, one in programs.items():
        if SERVER_NAME.fullmatch(name) is None:
            raise UsageError(
                f"{where}: mcp.{name[:80]!a} is no name for an MCP server: use a-z, 0-9 and dash,"
                " at most 64"
            )
        if not one.command[0] or any("\0" in word for word in one.command):
            raise UsageError(f"{where}: mcp.{name}.command needs a program, and no NUL anywhere")
        if not all(path.startswith("/") for path in one.reads):
            raise UsageError(f"{where}: mcp.{name}.reads are absolute paths of folders")


def _refuse_unknown(table: dict[str, Any], where: str) -> None:
    known = list(RigSettings.__struct_fields__)
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f": did you mean {near[0]}?" if near else f": known are {', '.join(known)}"
            raise UsageError(f"{where}: unknown key {key}{hint}")
