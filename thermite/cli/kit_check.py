"""`thermite kit check`: everything that is wrong with a kit, at once."""

from pathlib import Path

import click

from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.output import Output, with_output
from thermite.errors import NotFoundError
from thermite.kit.examine import examine


@click.command("check", epilog="Example: thermite kit check kits/smoke-cpu")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@with_output
def command(output: Output, *, folder: Path) -> None:
    """Read a kit's kit.json and look at the files that it names; exit 4 when there is a problem.

    Needs no git, no rig and no root, and changes nothing.
    """
    if not folder.is_dir():
        raise NotFoundError(f"there is no folder {folder}")
    found = examine(folder)
    for text in found.warnings:
        output.warn(text)
    output.document({"ok": not found.problems, "problems": found.problems})
    for text in found.problems:
        output.result(text)
    if found.problems:
        raise CommandEnds(Exit.REFUSED)
    output.result(f"{folder} is a kit without problems")
