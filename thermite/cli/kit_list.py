"""`thermite kit list`: the kits that `--kit` knows by name."""

import click

from thermite.cli.control_side import with_home
from thermite.cli.output import Output, with_output
from thermite.control.home import ControlHome
from thermite.control.sources import NEWEST, kept_kits, shipped_kits
from thermite.kit.bundle import ref_of


@click.command("list", epilog="Example: thermite kit list --json")
@with_home
@with_output
def command(output: Output, *, home: ControlHome) -> None:
    """List the kits that were sent from here, with the commit sent last, and those shipped."""
    kept = {name: ref_of(home.kits / f"{name}.git", NEWEST) for name in kept_kits(home)}
    shipped = shipped_kits()
    output.document(
        {
            "kits": [
                {"name": name, "commit": kept.get(name), "shipped": name in shipped}
                for name in sorted({*kept, *shipped})
            ]
        }
    )
    for name, commit in kept.items():
        output.result(f"{name}  {commit or 'no commit'}")
    for name in shipped:
        if name not in kept:
            output.result(f"{name}  comes with Thermite")
