"""`thermite kit fit`: does a kit fit a contract, on such a rig?"""

from pathlib import Path

import click

from thermite.cli.arguments import KIT, PATH, TEXT
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.kit_check import examined
from thermite.cli.output import Output, with_output
from thermite.control.contract_file import read_contract_file
from thermite.kit.fit import fit_problems, fit_warnings
from thermite.schema.contract import Contract
from thermite.schema.contract_text import contract_of


@click.command(
    "fit", epilog="Example: thermite kit fit demo-cpu --contract contract.toml --target cpu"
)
@click.argument("folder", metavar="DIR", type=KIT)
@click.option("--contract", "file", type=PATH, required=True, help="The contract, .toml or .json.")
@click.option("--target", type=TEXT, default="cpu", show_default=True, help="The rig's target.")
@with_output
def command(output: Output, *, folder: Path, file: Path, target: str) -> None:
    """Hold a kit against a contract as a rig does before it takes an order; exit 4 on a problem."""
    found = examined(folder)
    contract = contract_of(read_contract_file(file).fields, completed=False)
    problems = [f"kit: {text}" for text in found.problems]
    warnings: list[str] = []
    if not isinstance(contract, Contract):
        problems += [f"contract: {one}" for one in contract]
    elif found.kit is not None:
        problems += fit_problems(found.kit, contract, target)
        warnings = fit_warnings(found.kit, contract)
    told = {"warnings": warnings} if warnings else {}
    output.document({"ok": not problems, "problems": problems, **told})
    for text in warnings:
        output.warn(text)
    for text in problems:
        output.result(text)
    if problems:
        raise CommandEnds(Exit.REFUSED)
    output.result(f"{folder} fits {file} on {target}")
