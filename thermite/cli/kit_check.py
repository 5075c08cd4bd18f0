"""`thermite kit check`: everything that is wrong with a kit, at once."""

from pathlib import Path

import click

from thermite.cli.arguments import KIT
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.output import Output, with_output
from thermite.errors import NotFoundError
from thermite.kit.doubts import doubts
from thermite.kit.examine import Examined, examine
from thermite.kit.known import read_known
from thermite.schema.document import printable


@click.command("check", epilog="Example: thermite kit check smoke-cpu --strict")
@click.argument("folder", metavar="DIR", type=KIT)
@click.option("--strict", is_flag=True, help="Warn of what makes a kit easy to fool, too.")
@with_output
def command(output: Output, *, folder: Path, strict: bool) -> None:
    """Read a kit's kit.json, the files that it names and its known candidates; exit 4 on a problem.

    Needs no git, no rig and no root, runs nothing and changes nothing.
    """
    found = examined(folder)
    warnings = list(found.warnings)
    problems = list(found.problems)
    if found.kit is not None:
        problems += map(printable, read_known(found.kit, folder).problems)
    if strict and found.kit is not None:
        warnings += doubts(found.kit, folder)
    for text in warnings:
        output.warn(text)
    output.document({"ok": not problems, "problems": problems, "warnings": warnings})
    for text in problems:
        output.result(text)
    if problems:
        raise CommandEnds(Exit.REFUSED)
    output.result(f"{folder}: {_summary(len(warnings))}")


def _summary(warnings: int) -> str:
    if not warnings:
        return "no problems"
    return f"no problems, {warnings} warning{'s' if warnings > 1 else ''}"


def examined(folder: Path) -> Examined:
    """Return what there is to say about a kit's folder.

    Raises:
        NotFoundError: there is no such folder.
    """
    return examine(kit_folder(folder))


def kit_folder(folder: Path) -> Path:
    """Return the folder of a kit.

    Raises:
        NotFoundError: there is no such folder.
    """
    if folder.is_dir():
        return folder
    if folder.exists():
        raise NotFoundError(f"{folder} is a file: a kit is a folder, with a kit.json in it")
    raise NotFoundError(f"there is no folder {folder}")
