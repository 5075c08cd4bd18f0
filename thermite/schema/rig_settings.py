"""`rig.toml`: what the owner of a rig sets. Source: the reference page "Files of a rig"."""

import difflib
import tomllib
from typing import Any, Literal, TypeAlias

import msgspec

from thermite.errors import UsageError
from thermite.schema.access import check_key_command
from thermite.schema.ids import is_name
from thermite.schema.strict import Strict

MAX_BYTES = 1 << 18
"""A settings file of more than 256 KiB is a mistake (our figure)."""


class Slots(Strict):
    """How many slots of a kind a rig has."""

    builders: int = 1
    runs: int = 1
    workers: int = 1


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
    mcp: dict[str, Any] = msgspec.field(default_factory=dict)


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
        table = tomllib.loads(raw.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{where} is not TOML: {error}") from error
    _refuse_unknown(table, where)
    try:
        settings = msgspec.convert(table, RigSettings)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {error}") from error
    if not is_name(settings.name):
        raise UsageError(f"{where}: name is {settings.name!r}: use a-z, 0-9, '.', '_', '-'")
    try:
        if settings.key_command is not None:
            check_key_command(settings.key_command)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return settings


def _refuse_unknown(table: dict[str, Any], where: str) -> None:
    known = list(RigSettings.__struct_fields__)
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            hint = f": did you mean {near[0]}?" if near else f": known are {', '.join(known)}"
            raise UsageError(f"{where}: unknown key {key}{hint}")
