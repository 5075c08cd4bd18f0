"""`thermite kit show`: what a judge does with a kit, in words."""

from pathlib import Path

import click

from thermite.cli.arguments import KIT
from thermite.cli.kit_check import kit_folder
from thermite.cli.output import Output, with_output
from thermite.kit.describe import describe
from thermite.kit.manifest import load_kit


@click.command("show", epilog="Example: thermite kit show demo-cpu")
@click.argument("folder", metavar="DIR", type=KIT)
@with_output
def command(output: Output, *, folder: Path) -> None:
    """Say what will happen: stages, users, limits, cells, and what a run can see."""
    kit = load_kit(kit_folder(folder))
    output.document({"kit": kit})
    for line in describe(kit):
        output.result(line)
