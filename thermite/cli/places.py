"""Where a command finds a rig's ledger: `--state`, `--ledger`, or what is set for `state`."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import click

from thermite.cli.arguments import PATH
from thermite.cli.configured import set_elsewhere
from thermite.cli.exits import CommandEnds, Exit
from thermite.harness.kept_state import OWN, RIG

STATE_VARIABLE: Final = "THERMITE_STATE"

_Command = TypeVar("_Command", bound=Callable[..., None])


def ledger_options(command: _Command) -> _Command:
    """Give a command the options `--state` and `--ledger`."""
    ledger = click.option("--ledger", type=PATH, help="A ledger file.")
    return click.option("--state", type=PATH, help="The rig's folder.")(ledger(command))


def ledger_of(state: Path | None, ledger: Path | None) -> Path:
    """Return the ledger that a command is about.

    Raises:
        CommandEnds: neither option nor variable nor file names one (usage).
    """
    if ledger is not None:
        return ledger
    if state is not None:
        return state / "ledger.db"
    named = set_elsewhere("state")
    if named is None:
        raise CommandEnds(
            Exit.USAGE, f"which rig? give --state DIR or --ledger FILE, or set {STATE_VARIABLE}"
        )
    return Path(named.value) / "ledger.db"


def awaited_ledger(state: Path | None, ledger: Path | None) -> Path:
    """Return the ledger that a command is about, which a rig may open only later.

    Raises:
        CommandEnds: no rig will: the folder is somebody else's, or nothing at all.
    """
    found = ledger_of(state, ledger)
    folder = found.parent
    if not found.is_file() and not _may_be_a_rigs(folder):
        what = "is no rig's folder" if folder.is_dir() else "is no folder"
        near = _nearby(folder) or f", and {folder} {what}"
        raise CommandEnds(Exit.NOT_FOUND, f"there is no ledger at {found}{near}")
    return found


def _may_be_a_rigs(folder: Path) -> bool:
    if not folder.is_dir():
        return folder.parent.is_dir() and not os.path.lexists(folder)
    if any(os.path.lexists(folder / name) for name in {*RIG, *OWN}):
        return True
    return os.access(folder, os.R_OK) and not any(folder.iterdir())


def existing_ledger(state: Path | None, ledger: Path | None) -> Path:
    """Return the ledger that a command is about, which must exist.

    Raises:
        CommandEnds: there is none.
    """
    found = ledger_of(state, ledger)
    if not found.is_file():
        raise CommandEnds(Exit.NOT_FOUND, f"there is no ledger at {found}{_nearby(found.parent)}")
    return found


def _nearby(folder: Path) -> str:
    """Return where a ledger is that was probably meant, in words; nothing where none is."""
    if folder.is_file():
        return f": {folder} is a file, so give it with --ledger"
    if (folder / "rig/ledger.db").is_file():
        return f", and one at {folder}/rig"
    return ""
