"""`thermite kit list`: the kits that control keeps."""

import click

from thermite.cli.control_side import with_home
from thermite.cli.output import Output, with_output
from thermite.control.home import ControlHome
from thermite.control.sources import NEWEST, kept_kits
from thermite.kit.bundle import ref_of


@click.command("list", epilog="Example: thermite kit list --json")
@with_home
@with_output
def command(output: Output, *, home: ControlHome) -> None:
    """List the kits that were sent from here, each with the commit that was sent last."""
    kits = [
        {"name": name, "commit": ref_of(home.kits / f"{name}.git", NEWEST)}
        for name in kept_kits(home)
    ]
    output.document({"kits": kits})
    for one in kits:
        output.result(f"{one['name']}  {one['commit'] or 'no commit'}")
    if not kits:
        output.result("no kits are kept yet: thermite assign --kit keeps what it sends")
