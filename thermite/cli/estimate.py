"""`thermite estimate`: what a contract will cost on a rig, and what the rig can see."""

from pathlib import Path

import click

from thermite.cli.arguments import PATH, PLACE, TEXT
from thermite.cli.assign import described, show
from thermite.cli.control_side import with_home
from thermite.cli.output import Output, with_output
from thermite.control.assign import prepare
from thermite.control.contract_file import read_contract_file
from thermite.control.home import ControlHome
from thermite.control.rigs import known_rigs
from thermite.errors import UsageError


@click.command("estimate", epilog="Example: thermite estimate contract.toml --kit ./kit")
@click.argument("contract", type=PATH)
@click.option("--rig", "rig_name", type=TEXT, help="A rig that control knows; the only one.")
@click.option(
    "--kit", type=PLACE, help="The judge's kit: a path, a git address, or a kept kit's name."
)
@click.option(
    "--project", type=PLACE, help="The project's repository; else the one around CONTRACT."
)
@with_home
@with_output
def command(
    output: Output,
    *,
    home: ControlHome,
    contract: Path,
    rig_name: str | None,
    kit: str | None,
    project: str | None,
) -> None:
    """Say what CONTRACT will cost on a rig and what that rig can see; nothing is sent."""
    file = read_contract_file(contract)
    name = rig_name or _only_rig(home)
    with prepare(home, file, rig_name=name, project=project, kit=kit) as prepared:
        show(output, prepared)
        told = described(prepared)
    output.document({name: told[name] for name in ("contract", "rig", "kit", "expect", "cost")})


def _only_rig(home: ControlHome) -> str:
    names = list(known_rigs(home))
    if len(names) != 1:
        if names:
            raise UsageError(f"for which rig? name one with --rig: there are {', '.join(names)}")
        raise UsageError(
            f"for which rig? control's folder {home.root} knows none: add one with thermite rig"
            " add, or name another folder with --data or THERMITE_DATA"
        )
    return names[0]
