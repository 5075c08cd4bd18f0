"""`thermite rig remove`: undo what `thermite rig init` made, and nothing else."""

from pathlib import Path

import click

from thermite.cli.arguments import PATH
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.output import Output, with_output
from thermite.cli.rig_init import MADE, MADE_FOLDER, needs_root
from thermite.rig.accounts import in_use, remove_accounts
from thermite.rig.settings_file import SETTINGS


@click.command("remove", epilog="Example: thermite rig remove --state /var/lib/thermite")
@click.option("--state", type=PATH, required=True, help="The rig's folder.")
@with_output
def command(output: Output, state: Path) -> None:
    """Remove the accounts that rig init made on this machine, and a folder that was never served.

    A folder with a ledger stays: what is in it can't be had again. Files that belonged to an
    account keep its number; a rig that is served from them takes them over.
    """
    needs_root("remove")
    busy = in_use()
    if busy:
        raise CommandEnds(
            Exit.WRONG_STATE, f"a rig runs as {', '.join(busy)}: stop it first (SIGTERM)"
        )
    removed = remove_accounts()
    state = state.absolute()
    is_gone = _remove_folder(state)
    output.document({"state": str(state), "removed": removed, "removed_folder": is_gone})
    output.result(f"removed accounts {', '.join(removed)}" if removed else "there was no account")
    if is_gone:
        output.result(f"removed {state}")
    elif state.exists():
        output.result(f"kept {state}: it holds more than rig init made")


def _remove_folder(state: Path) -> bool:
    """Remove rig.toml as init wrote it, and the folder if it was new then and is empty now."""
    rig_toml = state / SETTINGS
    if not rig_toml.is_file() or {path.name for path in state.iterdir()} != {SETTINGS}:
        return False
    made, _, rest = rig_toml.read_text(encoding="utf-8", errors="replace").partition("\n")
    is_as_made = rest.startswith('name = "') and rest.count("\n") == 1
    if f"{made}\n" not in {MADE, MADE_FOLDER} or not is_as_made:
        return False
    rig_toml.unlink()
    if f"{made}\n" == MADE_FOLDER:
        state.rmdir()
    return f"{made}\n" == MADE_FOLDER
