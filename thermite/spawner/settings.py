"""What a spawner is told at its own start, once: one JSON object, unknown fields refused."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, TypeAlias, get_args

WantedLevel: TypeAlias = Literal["auto", "none", "namespaces", "users", "users+namespaces"]

DEFAULT_STAGE_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
DEFAULT_UID_RANGE: Final = (58000, 58999)
DEFAULT_RUN_DIR: Final = "/run/thermite"
MAX_SETTINGS_BYTES: Final = 1 << 16


class BadSettingsError(Exception):
    """The settings can't be used; whoever starts the spawner has to mend them."""


@dataclass(frozen=True)
class Program:
    """A child that the spawner starts and starts again; argv and env never change."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True)
class Settings:
    """All settings of one spawner.

    state: the rig's folder; stage_root: where stage folders lie; fallback_root: a folder
    below which a fresh stage root is made when stages can't reach stage_root, or None: then
    that is an error; slots: name to whether it has the network; private: folders that no
    stage may read; run_cpus: None for the last CPU when there is more than one;
    slot_env: variables of a slot's stages that nobody else decides, as the card of its runs;
    slot_reach: folders that a slot's stages may read beside the system's;
    cards: numbers of the cards that blocks are timed on;
    realtime_runs: timed runs are SCHED_FIFO, so that nothing else holds them up;
    client_fd: the socket of a harness that is there already; children: both, or none; tried:
    the children of a rig that serves, of which a client wants to know whom they could run as.
    """

    state: str
    stage_root: str
    slots: Mapping[str, bool]
    fallback_root: str | None = None
    isolation: WantedLevel = "auto"
    private: tuple[str, ...] = ()
    uid_range: tuple[int, int] = DEFAULT_UID_RANGE
    run_dir: str = DEFAULT_RUN_DIR
    run_cpus: tuple[int, ...] | None = None
    slot_env: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    slot_reach: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    cards: tuple[int, ...] = ()
    stage_path: str = DEFAULT_STAGE_PATH
    realtime_runs: bool = False
    client_fd: int | None = None
    children: Mapping[str, Program] = field(default_factory=dict)
    tried: Mapping[str, Program] = field(default_factory=dict)


def read_settings(raw: bytes) -> Settings:
    """Return the settings in `raw`.

    Raises:
        BadSettingsError: with what is wrong in words.
    """
    if len(raw) > MAX_SETTINGS_BYTES:
        raise BadSettingsError(f"the settings are over {MAX_SETTINGS_BYTES} bytes")
    try:
        told = json.loads(raw)
    except ValueError as error:
        raise BadSettingsError(f"the settings are not JSON: {error}") from None
    known = {one.name for one in fields(Settings)}
    if not isinstance(told, dict) or told.keys() - known:
        raise BadSettingsError(f"the settings must be an object of {', '.join(sorted(known))}")
    return _checked(told)


def _programs(told: Mapping[str, Any]) -> dict[str, Program]:
    return {name: Program(tuple(one["argv"]), dict(one["env"])) for name, one in told.items()}


def _variables(told: Mapping[str, Any]) -> dict[str, str]:
    return {str(name): str(value) for name, value in told.items()}


def _tops(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the folders that lie in none of the others."""
    found: list[str] = []
    for path in sorted(paths):
        if not any(path == top or path.startswith(f"{top}/") for top in found):
            found.append(path)
    return tuple(found)


def _checked(told: dict[str, Any]) -> Settings:
    try:
        children, tried = (_programs(told.pop(name, {})) for name in ("children", "tried"))
        low, high = told.pop("uid_range", DEFAULT_UID_RANGE)
        cpus = told.pop("run_cpus", None)
        cards = told.pop("cards", ())
        slot_env = {slot: _variables(one) for slot, one in told.pop("slot_env", {}).items()}
        reach = {slot: _tops(map(str, one)) for slot, one in told.pop("slot_reach", {}).items()}
        settings = Settings(
            **told | {"private": tuple(told.get("private", ()))},
            uid_range=(int(low), int(high)),
            run_cpus=None if cpus is None else tuple(int(cpu) for cpu in cpus),
            cards=tuple(int(card) for card in cards),
            slot_env=slot_env,
            slot_reach=reach,
            children=children,
            tried=tried,
        )
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise BadSettingsError(f"a setting has the wrong form: {error}") from None
    if settings.isolation not in get_args(WantedLevel):
        wanted = ", ".join(get_args(WantedLevel))
        raise BadSettingsError(f"isolation is {settings.isolation!r}, not one of {wanted}")
    if bool(settings.children) == (settings.client_fd is not None):
        raise BadSettingsError("give either children or client_fd")
    if settings.children and settings.tried:
        raise BadSettingsError("children that are started are tried by that: leave tried out")
    if {*settings.children, *settings.tried} not in (set(), {"supervisor", "harness"}):
        raise BadSettingsError("children must be supervisor and harness")
    if not 0 < settings.uid_range[0] <= settings.uid_range[1]:
        raise BadSettingsError(f"the uid range {settings.uid_range} must start above 0")
    return settings
