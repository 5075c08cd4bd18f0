"""`thermite rig serve`: read the settings, make the folders, become the spawner."""

import os
import sys
import sysconfig
from pathlib import Path
from typing import Final

import click

from thermite.cli.arguments import PATH, TEXT
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.output import Output, with_output
from thermite.command.trust import read_trust, trust_problems
from thermite.errors import InfrastructureError, UsageError
from thermite.ledger.place import filesystem_problem
from thermite.rig.pinning import timed_as
from thermite.rig.settings_file import SETTINGS, settings_in
from thermite.rig.start import SpawnerConfig, become
from thermite.schema.rig_settings import RigSettings, read_rig_settings

LEDGER: Final = "ledger.db"
MAX_TRUST_BYTES: Final = 1 << 16
"""A file of public lines of more than 64 KiB is a mistake (our figure)."""


@click.command(
    "serve",
    epilog="Example: thermite rig serve --state /var/lib/thermite --trust operator.pub",
)
@click.option("--state", type=PATH, required=True, help="The rig's folder.")
@click.option("--trust", type=PATH, help="Public lines to trust at first.")
@click.option("--name", type=TEXT, help="The rig's name, when there is no rig.toml yet.")
@click.option(
    "--fallback", is_flag=True, help="Step down with a note where users can't reach their files."
)
@with_output
def command(
    output: Output, state: Path, trust: Path | None, name: str | None, *, fallback: bool
) -> None:
    """Serve a rig until it is told to end (SIGTERM); the process becomes the rig's spawner."""
    state = state.absolute()
    env = {"THERMITE_STATE": str(state)}
    if trust is not None:  # before anything is made: the wrong file leaves no rig behind
        env["THERMITE_FIRST_TRUST"] = first_trust(trust)
    check_filesystem(state)
    make_state(state)
    settings = rig_settings(state, name)
    if os.environ.get("THERMITE_SELFTEST"):
        env["THERMITE_SELFTEST"] = os.environ["THERMITE_SELFTEST"]
    output.progress(f"serving {settings.name} in {state}")
    become(spawner_config(state, settings, fallback=fallback), env)


def check_filesystem(state: Path) -> None:
    """Refuse a folder where no ledger can be kept before anything is made in it.

    Raises:
        InfrastructureError: with the filesystem's type (known faults, L1).
    """
    problem = filesystem_problem(state / LEDGER)
    if problem is not None:
        raise InfrastructureError(problem)


def make_state(state: Path) -> None:
    """Make the rig's folder, which others may pass through but not list.

    Raises:
        CommandEnds: it can't be made, or is no folder of ours.
    """
    try:
        state.mkdir(mode=0o711, parents=True, exist_ok=True)
    except OSError as error:
        said = f"{state} can't be a rig's folder: {error.strerror}"
        raise CommandEnds(Exit.USAGE, said) from error
    if state.stat().st_uid != os.geteuid():
        raise CommandEnds(
            Exit.USAGE, f"{state} belongs to uid {state.stat().st_uid}: serve it as that user"
        )
    state.chmod(0o711)


def rig_settings(state: Path, name: str | None) -> RigSettings:
    """Return what rig.toml says; without one, write it with the rig's name.

    Raises:
        UsageError: rig.toml can't be used, or names the rig otherwise.
    """
    found = settings_in(state)
    if found is not None:
        check_name(state, found, name)
        return found
    path = state / SETTINGS
    path.write_text(f'name = "{name or "rig"}"\n', encoding="utf-8")
    path.chmod(0o644)
    return read_rig_settings(path.read_bytes(), str(path))


def check_name(state: Path, settings: RigSettings, name: str | None) -> None:
    """Refuse a name that a rig's rig.toml does not give it: an option would change nothing there.

    Raises:
        UsageError: it names the rig otherwise.
    """
    if name is not None and name != settings.name:
        raise UsageError(
            f"{state / SETTINGS} names this rig {settings.name}, and --name says {name[:80]!a}: set"
            " name there, or leave --name out"
        )


def first_trust(path: Path) -> str:
    """Return the public lines of a trust file, checked.

    Raises:
        UsageError: it can't be read, or holds no trust.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_TRUST_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from error
    if len(raw) > MAX_TRUST_BYTES:
        raise UsageError(f"{path} is larger than {MAX_TRUST_BYTES} bytes: it holds public lines")
    problems = trust_problems(read_trust(raw))
    if problems:
        raise UsageError(f"{path}: {'; '.join(problems)}")
    return raw.decode()


def spawner_config(state: Path, settings: RigSettings, *, fallback: bool) -> SpawnerConfig:
    """Return what the spawner is told; fallback: stages may lie under /var/tmp."""
    slots = {"check": False, "import": False}
    slots |= {f"builder-{i}": False for i in range(settings.slots.builders)}
    slots |= {f"run-{i}": False for i in range(settings.slots.runs)}
    slots |= {f"worker-{i}": False for i in range(settings.slots.workers)}
    gateways = [f"gateway-{i}" for i in range(settings.slots.gateways)]
    slots |= dict.fromkeys(gateways, True)
    return SpawnerConfig(
        state,
        fallback_root=Path("/var/tmp") if fallback else None,  # noqa: S108  a fresh 0711 folder
        slots=slots,
        slot_reach=dict.fromkeys(gateways, gateway_reach(settings)),
        **timed_as(settings),
    )


def gateway_reach(settings: RigSettings) -> list[Path]:
    """Return what a gateway reads beside the system: Python, packages, and what servers need.

    Raises:
        UsageError: a folder of `[mcp.<name>] reads` is none.
    """
    places = [sysconfig.get_path(name) for name in ("purelib", "platlib")]
    reach = [*map(Path, (sys.prefix, sys.base_prefix, *places))]
    for name, program in settings.mcp.items():
        for path in map(Path, program.reads):
            if not path.is_dir():
                raise UsageError(f"{SETTINGS}: mcp.{name}.reads: {path} is no folder")
            reach.append(path)
    return list(dict.fromkeys(path.resolve() for path in reach if path.is_dir()))
