"""`thermite rig list`: the rigs that control knows."""

import click
import msgspec

from thermite.cli.control_side import with_home
from thermite.cli.output import Output, with_output
from thermite.control.home import ControlHome
from thermite.control.rigs import KnownRig, known_rigs


@click.command("list", epilog="Example: thermite rig list --json")
@with_home
@with_output
def command(output: Output, *, home: ControlHome) -> None:
    """List the rigs that control knows, as they last spoke of themselves."""
    rigs = known_rigs(home)
    output.document({"rigs": [{"name": n, **msgspec.to_builtins(r)} for n, r in rigs.items()]})
    for name, rig in rigs.items():
        output.result(
            f"{name}  {rig.rig}  {rig.target}  isolation {rig.isolation}  {_sight(rig)}  as of"
            f" {rig.read_at}  {rig.inbox}"
        )
    if not rigs:
        output.result("no rig is known: add one with thermite rig add NAME --inbox DIR")


def _sight(rig: KnownRig) -> str:
    if rig.grade is None:
        return "no selftest"
    return f"graded {rig.grade}" + ("" if rig.sees is None else f", sees ≥ {rig.sees * 100:.1f} %")
