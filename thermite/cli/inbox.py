"""`thermite inbox`: files into a rig's inbox by hand, and what lies there."""

from pathlib import Path

import click
import msgspec

from thermite.cli.arguments import PATH, TEXT
from thermite.cli.control_side import with_home
from thermite.cli.noun import NounGroup
from thermite.cli.output import Output, with_output
from thermite.control.home import ControlHome
from thermite.control.inbox import drop_files, lying
from thermite.control.rigs import known_rig
from thermite.errors import UsageError


@click.group("inbox", cls=NounGroup, epilog="Example: thermite inbox list --rig bench")
def command() -> None:
    """A rig's inbox by hand; thermite assign does all of it by itself."""


def _which(home: ControlHome, rig_name: str | None, folder: Path | None) -> Path:
    if (rig_name is None) == (folder is None):
        raise UsageError("which inbox? give either --rig NAME or --inbox DIR")
    return folder if folder is not None else Path(known_rig(home, str(rig_name)).inbox)


@command.command("drop", epilog="Example: thermite inbox drop a.cmd.json kit.bundle --rig bench")
@click.argument("files", type=PATH, nargs=-1, required=True)
@click.option("--rig", "rig_name", type=TEXT, help="A rig that control knows.")
@click.option("--inbox", "folder", type=PATH, help="An inbox folder.")
@with_home
@with_output
def drop(
    output: Output,
    *,
    home: ControlHome,
    files: tuple[Path, ...],
    rig_name: str | None,
    folder: Path | None,
) -> None:
    """Put FILES into an inbox so that the rig sees each whole or not at all.

    Orders (*.cmd.json) come last and under random names; other files keep theirs.
    """
    inbox = _which(home, rig_name, folder)
    names = drop_files(inbox, files)
    output.document({"inbox": str(inbox), "files": names})
    for name in names:
        output.result(f"dropped {name}")


@command.command("list", epilog="Example: thermite inbox list --inbox /srv/rig/inbox --json")
@click.option("--rig", "rig_name", type=TEXT, help="A rig that control knows.")
@click.option("--inbox", "folder", type=PATH, help="An inbox folder.")
@with_home
@with_output
def list_inbox(
    output: Output, *, home: ControlHome, rig_name: str | None, folder: Path | None
) -> None:
    """List what lies in an inbox, as far as you may see it."""
    inbox = _which(home, rig_name, folder)
    found, closed = lying(inbox)
    output.document(
        {"inbox": str(inbox), "files": msgspec.to_builtins(found), "closed_to_you": closed}
    )
    for file in found:
        output.result(f"{file.folder}  {file.size}  {file.name}")
    if closed:
        output.result(f"closed to you: {', '.join(closed)} (see thermite receipts list)")
    elif not found:
        output.result("empty")
