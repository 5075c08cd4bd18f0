"""A subcommand with everything that `thermite.cli.output` is for."""

from pathlib import Path

import click

from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.output import Output, with_output
from thermite.errors import CommandError, InfrastructureError

HOSTILE = "café \u2714 \x1b[31mred\x1b[0m \u202ekcab"


@click.command("sample", epilog="Example: thermite sample --lines 3")
@click.option("--lines", default=1, help="How many lines of result.")
@click.option("--ends", default="", help="How it ends.")
@with_output
def command(output: Output, lines: int, ends: str) -> None:
    """Say something on every channel."""
    output.progress(f"working on {HOSTILE}")
    output.warn(f"isolation is none for {HOSTILE}")
    if output.is_live:
        output.console().print("drawn")
    for _ in range(lines):
        output.result(f"result {HOSTILE}")
    output.console(on_stdout=True).print("[bold]table[/bold]", style="red")
    match ends:
        case "refused":
            raise CommandError("wrong_rig", f"for rig {HOSTILE}")
        case "infrastructure":
            raise InfrastructureError("disk is full")
        case "audit":
            raise CommandEnds(Exit.AUDIT_FINDING)
        case "interrupt":
            raise KeyboardInterrupt
        case "missing":
            Path("/nonexistent/file").read_bytes()
        case "bug":
            raise ZeroDivisionError
        case _:
            pass
    output.document({"text": HOSTILE})
