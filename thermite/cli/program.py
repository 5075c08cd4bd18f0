"""How thermite is started again: by a script from anywhere, by a person from where he stands."""

import os
import shlex
import shutil
import sys
from pathlib import Path


def program() -> list[str]:
    """Return the argv that starts this very thermite from any folder."""
    beside = Path(sys.executable).with_name("thermite")
    return [str(beside)] if beside.is_file() else [sys.executable, "-P", "-m", "thermite"]


def typed() -> str:
    """Return what a person types for it here: its bare name where the shell finds it by that."""
    argv = program()
    found = shutil.which("thermite")
    if found is not None and Path(found).resolve() == Path(argv[0]).resolve():
        return "thermite"
    return shlex.join([near(Path(argv[0])), *argv[1:]])


def near(path: Path) -> str:
    """Return a path as it is written from here: relative below the current folder."""
    here = Path.cwd()
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 - a link in it stays as it was written
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)


def from_here(path: Path) -> str:
    """Return a path for a shell in this folder that goes elsewhere later: absolute, by $PWD."""
    short = near(path)
    return shlex.quote(short) if short.startswith("/") else f'"$PWD"/{shlex.quote(short)}'


def by_name() -> str:
    """Return the command of a shell after which `thermite` is this very one."""
    argv = program()
    if Path(argv[0]).name == "thermite":
        return f'export PATH={from_here(Path(argv[0]).parent)}:"$PATH"'
    return f"alias thermite={shlex.quote(shlex.join(argv))}"
