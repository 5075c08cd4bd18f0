"""`thermite assign`: complete a contract, sign it, and send it to a rig."""

import contextlib
import os
import shlex
from pathlib import Path
from typing import Any

import click
import msgspec

from thermite.cli.answered import accepted
from thermite.cli.arguments import PATH, PLACE, TEXT
from thermite.cli.control_side import (
    rig_option,
    signing_key,
    timeout_option,
    with_home,
    with_key,
)
from thermite.cli.output import Output, with_output
from thermite.cli.program import near
from thermite.cli.pulse import pulse
from thermite.control.assign import Prepared, prepare, send
from thermite.control.contract_file import read_contract_file, save_ids
from thermite.control.home import ControlHome
from thermite.control.order import Order


@click.command(
    "assign",
    epilog="Example: thermite assign contract.toml --kit ./kit --rig bench --wait",
)
@click.argument("contract", type=PATH)
@rig_option
@click.option(
    "--kit", type=PLACE, help="The judge's kit: a path, a git address, or a kept kit's name."
)
@click.option(
    "--kit-source", type=TEXT, help="Address, or control: the rig fetches the kit from there."
)
@click.option(
    "--access", type=TEXT, help="The rig's access to --kit-source; Settings must know the name."
)
@click.option(
    "--project", type=PLACE, help="The project's repository; else the one around CONTRACT."
)
@click.option("--model", "models", type=PATH, multiple=True, help="A model file to send along.")
@click.option("--dry-run", is_flag=True, help="Complete and check everything, and send nothing.")
@click.option("--save", is_flag=True, help="Write the full ids back into CONTRACT.")
@click.option("--wait", is_flag=True, help="Return with the rig's receipt.")
@timeout_option(600.0, "The longest that --wait waits.")
@with_key
@with_home
@with_output
def command(  # noqa: PLR0913 - a command's options are its arguments
    output: Output,
    *,
    home: ControlHome,
    contract: Path,
    rig_name: str,
    kit: str | None,
    kit_source: str | None,
    access: str | None,
    project: str | None,
    models: tuple[Path, ...],
    dry_run: bool,
    save: bool,
    wait: bool,
    timeout_s: float,
    key: Path | None,
    passphrase_file: Path | None,
) -> None:
    """Complete CONTRACT, say what to expect of it, sign it and send it to a rig.

    With --wait it ends with 0 when the rig has accepted, with 4 when it refuses, and with 7
    when no answer came in time; the campaign's end is thermite watch --until ended.
    """
    file = read_contract_file(contract)
    with contextlib.ExitStack() as stack:
        with pulse(output, f"completing {contract}", at_once=False):
            prepared = stack.enter_context(
                prepare(
                    home,
                    file,
                    rig_name=rig_name,
                    project=project,
                    kit=kit,
                    models=models,
                    kit_source=kit_source,
                    access=access,
                )
            )
        show(output, prepared)
        if save:
            save_ids(file, prepared.completed.contract.project)
        if dry_run:
            output.document({**described(prepared), "sent": False})
            output.result("nothing was sent (--dry-run)")
            return
        order, name = send(home, prepared, signing_key(home, key, passphrase_file))
    output.result(f"sent to rig {rig_name}: command {order.digest}")
    output.result(f"assignment {order.assignment}")
    told = {**described(prepared), **named(order), "sent": True, "file": name}
    if wait:
        answer(output, home, prepared, order, told, timeout_s=timeout_s)
    else:
        output.document(told)


def show(output: Output, prepared: Prepared) -> None:
    """Print what was completed and what to expect, before anything is sent."""
    for warning in prepared.warnings:
        output.warn(warning)
    contract = prepared.completed.contract
    output.result(f"contract {contract.name} ({contract.campaign}) {prepared.completed.sha256}")
    output.result(f"project {contract.project.repo} at {contract.project.commit}")
    if contract.project.kit is not None:
        output.result(f"kit {contract.project.kit.repo} at {contract.project.kit.commit}")
    for line in prepared.expect:
        output.result(line)


def described(prepared: Prepared) -> dict[str, Any]:
    """Return the completed assignment as plain values."""
    contract = prepared.completed.contract
    return {
        "contract": contract.name,
        "contract_sha256": prepared.completed.sha256,
        "project": {"repo": contract.project.repo, "commit": contract.project.commit},
        "kit": msgspec.to_builtins(contract.project.kit),
        "rig": prepared.rig.rig,
        "imports": [msgspec.to_builtins(package.line) for package in prepared.packages],
        "expect": prepared.expect,
        "cost": msgspec.to_builtins(prepared.cost),
    }


def named(order: Order) -> dict[str, Any]:
    """Return the names that an order goes by."""
    return {"command": order.digest, "command_id": order.id, "assignment": order.assignment}


def answer(
    output: Output,
    home: ControlHome,
    prepared: Prepared,
    order: Order,
    told: dict[str, Any],
    *,
    timeout_s: float,
) -> None:
    """Wait for the rig's decision and end with it.

    Raises:
        CommandEnds: refused, or no answer in time.
    """
    found = accepted(
        output, home, prepared.rig, order, file=told["file"], told=told, timeout_s=timeout_s
    )
    output.document(told)
    state = Path(prepared.rig.inbox).parent
    here = f" --state {shlex.quote(near(state))}" if os.access(state / "ledger.db", os.R_OK) else ""
    output.result(f"accepted: event {found.event_seq}; follow it with thermite watch{here}")
