"""What a person sets once instead of typing it: flag, variable, project file, own file.

The first that says something wins: the flag, the `THERMITE_*` variable, `thermite.toml` of the
project, `config.toml` in XDG's configuration folder. Both files have the same keys, and a path in
one is relative to its folder. Source: the system page, Command line, Configuration; known faults,
C11.
"""

import difflib
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thermite.errors import UsageError
from thermite.schema.strict_toml import NotToml, read_toml

PROJECT_FILE: Final = "thermite.toml"
"""In the working folder, or in one above it up to the top of its repository."""
OWN_FILE: Final = Path("thermite", "config.toml")
"""Below XDG_CONFIG_HOME, else `~/.config`."""
MOST_BYTES: Final = 1 << 16
"""Longest configuration file: it has a handful of lines (our figure)."""
MOST_LEVELS: Final = 64
"""Folders above the working folder that are looked at (our figure)."""


@dataclass(frozen=True)
class Key:
    """One key; variable: of the environment; is_path: its value is a path."""

    name: str
    flag: str
    variable: str
    is_path: bool


KEYS: Final = {
    key.name: key
    for key in (
        Key("data", "--data", "THERMITE_DATA", is_path=True),
        Key("key", "--key", "THERMITE_KEY", is_path=True),
        Key("passphrase_file", "--passphrase-file", "THERMITE_PASSPHRASE_FILE", is_path=True),
        Key("rig", "--rig", "THERMITE_RIG", is_path=False),
        Key("state", "--state", "THERMITE_STATE", is_path=True),
    )
}
"""Every key that a file may have."""


@dataclass(frozen=True)
class Set:
    """A value and where it came from: a variable's name, or a file's path."""

    value: str
    source: str


def configured(name: str, environment: Mapping[str, str], here: Path) -> Set | None:
    """Return what is set for a key beside its flag, None when nothing is.

    Args:
        here: the working folder.

    Raises:
        UsageError: a file on the way can't be used: not TOML, an unknown key, a wrong value.
    """
    key = KEYS[name]
    tables = {path: _read(path) for path in files(environment, here)}
    value = environment.get(key.variable)
    if value:
        return Set(value, key.variable)
    for path, table in tables.items():
        if name in table:
            return Set(_resolved(key, table[name], path), str(path))
    return None


def files(environment: Mapping[str, str], here: Path) -> Iterator[Path]:
    """Return the configuration files that are there, the first one to ask first."""
    project = _project_file(here)
    if project is not None:
        yield project
    xdg = environment.get("XDG_CONFIG_HOME", "")
    home = environment.get("HOME", "")
    folder = Path(xdg) if Path(xdg).is_absolute() else Path(home) / ".config"
    if folder.is_absolute() and (folder / OWN_FILE).exists():
        yield folder / OWN_FILE


def misspelt_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables that no key has, and look like one that has: name to the nearest."""
    known = [key.variable for key in KEYS.values()]
    found = {}
    for name in sorted(environment):
        if name.startswith("THERMITE") and name not in known:
            near = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
            if near:
                found[name] = near[0]
    return found


def _project_file(here: Path) -> Path | None:
    for folder in (here, *here.parents)[:MOST_LEVELS]:
        if (folder / PROJECT_FILE).exists():
            return folder / PROJECT_FILE
        if (folder / ".git").exists():
            return None
    return None


def _read(path: Path) -> dict[str, str]:
    """Return a file's keys and values.

    Raises:
        UsageError: it can't be used.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageError(f"{path} is no plain file: it can't be a configuration")
        with path.open("rb") as file:
            raw = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    if len(raw) > MOST_BYTES:
        raise UsageError(f"{path} has more than {MOST_BYTES} bytes: it is no configuration")
    try:
        table = read_toml(raw)
    except NotToml as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    for name, value in table.items():
        if name not in KEYS:
            near = difflib.get_close_matches(name, KEYS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(KEYS)}"
            raise UsageError(f"{path}: unknown key {name[:80]!a}: {hint}")
        if not isinstance(value, str) or not value or "\0" in value:
            raise UsageError(f"{path}: {name} must be a text that is not empty")
    return table


def _resolved(key: Key, value: str, path: Path) -> str:
    return str(path.parent / Path(value).expanduser()) if key.is_path else value
