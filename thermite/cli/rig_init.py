"""`thermite rig init`: the accounts of a rig, and its folder."""

import os
from pathlib import Path
from typing import Final

import click

from thermite.cli.arguments import PATH, TEXT
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.output import Output, with_output
from thermite.cli.rig_serve import check_filesystem, check_name, rig_settings
from thermite.errors import UsageError
from thermite.rig.accounts import account_names, make_accounts, numbers_in_use, uid_range
from thermite.rig.settings_file import SETTINGS, settings_in
from thermite.schema.rig_settings import RigSettings

MADE: Final = "# made by thermite rig init\n"
MADE_FOLDER: Final = "# made by thermite rig init, with its folder\n"


def needs_root(verb: str) -> None:
    """Refuse to go on for a plain user.

    Raises:
        CommandEnds: this is not root.
    """
    if os.geteuid() != 0:
        raise CommandEnds(
            Exit.USAGE,
            f"rig {verb} changes accounts: run it as root; a rig that you serve yourself has none",
        )


@click.command("init", epilog="Example: thermite rig init --state /var/lib/thermite --name bench")
@click.option("--state", type=PATH, required=True, help="The rig's folder.")
@click.option("--name", type=TEXT, help="The rig's name, for rig.toml (rig without it).")
@with_output
def command(output: Output, state: Path, name: str | None) -> None:
    """Make a rig's folder, and an account for each of its users, under the documents' names.

    A second call makes what is missing; a name that somebody else has is refused, and nothing
    is made. Then: thermite rig serve.
    """
    needs_root("init")
    state = state.absolute()
    check_filesystem(state)
    if not state.parent.is_dir():
        raise UsageError(f"{state.parent} is no folder: make it first")
    found = settings_in(state)
    if found is not None:
        check_name(state, found, name)
    settings = found or RigSettings()
    names = account_names(settings.slots)
    made = make_accounts(names, uid_range(), numbers_in_use())
    is_new = _make_folder(state, name)
    kept = [one for one in names if one not in made]
    output.document({"state": str(state), "made_folder": is_new, "made": made, "kept": kept})
    output.result(f"{'made' if is_new else 'kept'} {state}")
    output.result(f"made accounts {', '.join(made)}" if made else "every account was there")


def _make_folder(state: Path, name: str | None) -> bool:
    """Make the rig's folder with its rig.toml, whole; return whether the folder is new.

    A kill leaves at most a folder beside it, which the next call takes away.
    """
    new = state.with_name(f".{state.name}.thermite-new")
    if new.is_dir():
        (new / SETTINGS).unlink(missing_ok=True)
        new.rmdir()
    if (state / SETTINGS).exists():
        return False
    new.mkdir(mode=0o711)
    new.chmod(0o711)
    rig_settings(new, name)
    is_new = not state.exists()
    text = (MADE_FOLDER if is_new else MADE) + (new / SETTINGS).read_text(encoding="utf-8")
    (new / SETTINGS).write_text(text, encoding="utf-8")
    if is_new:
        new.rename(state)
    else:
        (new / SETTINGS).rename(state / SETTINGS)
        new.rmdir()
    return is_new
