"""`thermite init`: a project and a contract to start from."""

from pathlib import Path

import click

from thermite.cli.arguments import PATH
from thermite.cli.output import Output, with_output
from thermite.control.start import KIT_OF, start_project


@click.command(epilog="Example: thermite init my-matmul --example matmul")
@click.argument("folder", metavar="[DIR]", type=PATH, required=False)
@click.option(
    "--example",
    required=True,
    type=click.Choice(list(KIT_OF)),
    help="What to start from.",
)
@with_output
def command(output: Output, *, folder: Path | None, example: str) -> None:
    """Make a git repository with an example's first version and a contract.

    DIR is the name of the example unless it is given; it must be empty or not there yet.
    """
    started = start_project(example, folder or Path(example))
    output.document(
        {
            "project": str(started.project),
            "commit": started.commit,
            "contract": str(started.contract),
            "kit": str(started.kit),
        }
    )
    output.result(f"project   {started.project}, at {started.commit[:12]}")
    output.result(f"contract  {started.contract}")
    output.result(f"kit       {started.kit}")
    output.result(
        f"next      thermite assign {started.contract} --kit {started.kit.name} --rig NAME"
    )
