"""`thermite receipts`: what rigs answered, verified and kept."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import msgspec

from thermite.cli.arguments import PATH, TEXT, Whole
from thermite.cli.control_side import (
    end_with,
    rig_option,
    signing_key,
    timeout_option,
    with_home,
    with_key,
)
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.noun import NounGroup
from thermite.cli.output import Output, with_output
from thermite.cli.pulse import pulse
from thermite.control.assign import send_order
from thermite.control.home import ControlHome
from thermite.control.order import sign_order
from thermite.control.receipts import (
    KeptReceipt,
    after,
    collect,
    lost,
    newest_checkpoint,
    read_receipt,
    set_aside,
    unanswered,
)
from thermite.control.rigs import KnownRig, known_rig, known_rigs
from thermite.control.waiting import wait_for
from thermite.errors import UnreachableError
from thermite.schema.command import NoBody, Receipt


@click.group("receipts", cls=NounGroup, epilog="Example: thermite receipts list --rig bench")
def command() -> None:
    """What rigs answered to orders: signed, verified, and kept on control."""


@command.command("list", epilog="Example: thermite receipts list --json")
@click.option(
    "--rig", "rig_name", type=TEXT, help="Only this rig's; else every rig's that control knows."
)
@click.option(
    "--after-min",
    type=Whole(0),
    default=10,
    show_default=True,
    help="Warn of orders without a receipt after so many minutes.",
)
@with_home
@with_output
def list_receipts(
    output: Output, *, home: ControlHome, rig_name: str | None, after_min: int
) -> None:
    """Fetch new receipts from the outbox, verify and keep them, and list all there are."""
    rigs = {rig_name: known_rig(home, rig_name)} if rig_name else known_rigs(home)
    rows = []
    for name, rig in rigs.items():
        try:
            with pulse(output, f"reading the receipts of {name}", at_once=False):
                found = collect(home, rig)
        except UnreachableError as error:
            if rig_name:
                raise
            output.warn(f"rig {name}: {error}")
            continue
        rows += [_row(output, name, item) for item in found]
        _warn_of_silence(output, home, name, rig=rig, found=found, after_min=after_min)
        _warn_of_loss(output, home, name, rig=rig, found=found)
    output.document({"receipts": rows})
    if not rows:
        output.result("no receipts yet")


@command.command("verify", epilog="Example: thermite receipts verify FILE --rig bench")
@click.argument("files", type=PATH, nargs=-1, required=True)
@click.option(
    "--rig", "rig_name", type=TEXT, required=True, help="The rig that is said to have signed them."
)
@with_home
@with_output
def verify(output: Output, *, home: ControlHome, files: tuple[Path, ...], rig_name: str) -> None:
    """Check receipts by hand: the rig's signature, the command they answer, the checkpoint."""
    rig = known_rig(home, rig_name)
    items = [read_receipt(file, rig) for file in files]
    rows = [_row(output, rig_name, item) for item in items]
    bad = sum(item.receipt is None for item in items)
    output.document({"receipts": rows, "bad": bad})
    if bad:
        text = "" if output.as_json else f"{bad} of {len(items)} receipts can't be believed"
        raise CommandEnds(Exit.REFUSED, text)


@command.command("checkpoint", epilog="Example: thermite receipts checkpoint --rig bench")
@rig_option
@timeout_option(120.0)
@with_key
@with_home
@with_output
def checkpoint(
    output: Output,
    *,
    home: ControlHome,
    rig_name: str,
    timeout_s: float,
    key: Path | None,
    passphrase_file: Path | None,
) -> None:
    """Ask a rig for a signed checkpoint of its ledger, and keep it as a witness."""
    rig = known_rig(home, rig_name)
    signer = signing_key(home, key, passphrase_file)
    order = sign_order(
        "checkpoint_now",
        NoBody(),
        rig=rig,
        keys=[signer],
        after=after(home, rig),
        now=datetime.now(UTC),
    )
    name = send_order(home, rig, order)
    told: dict[str, Any] = {"command": order.digest, "file": name}
    found = wait_for(rig, order, name, most_s=timeout_s, tell=output.progress)
    if found is None:
        end_with(output, told, Exit.TIMEOUT, f"no answer in {timeout_s:g} s: is the rig on?")
    if not isinstance(found, Receipt) or found.outcome == "refused":
        end_with(output, told, Exit.REFUSED, f"{found.code}: {found.message}")
    collect(home, rig)
    held = newest_checkpoint(home, rig)
    if held is None:
        end_with(output, told, Exit.FAILED, "the rig accepted, and its receipt has no checkpoint")
    output.document({**told, "size": held.size, "head": held.head.hex(), "time": held.time})
    output.result(f"checkpoint of {held.size} events, {held.time}, head {held.head.hex()}")


def _row(output: Output, rig_name: str, item: KeptReceipt) -> dict[str, Any]:
    """Print one receipt and return it as plain values."""
    receipt = item.receipt
    if receipt is None:
        output.result(f"{rig_name}  {item.name}  can't be believed: {item.problem}")
        return {"rig": rig_name, "file": item.name, "problem": item.problem}
    said = f"  {receipt.code}: {receipt.message}" if receipt.code else ""
    output.result(
        f"{rig_name}  {receipt.at or '-'}  {receipt.command.sha256[:12]}  {receipt.outcome}{said}"
    )
    return {"rig": rig_name, "file": item.name, "receipt": msgspec.to_builtins(receipt)}


def _warn_of_silence(
    output: Output,
    home: ControlHome,
    name: str,
    *,
    rig: KnownRig,
    found: list[KeptReceipt],
    after_min: int,
) -> None:
    for order in unanswered(home, rig, found, now=datetime.now(UTC), after_min=after_min):
        output.warn(
            f"rig {name} has not answered {order.type} {order.digest[:12]}, sent at {order.at}: the"
            " rig may be off, or the file was taken out of its inbox"
        )


def _warn_of_loss(
    output: Output, home: ControlHome, name: str, *, rig: KnownRig, found: list[KeptReceipt]
) -> None:
    held = lost(home, rig, found)
    if held is not None:
        output.warn(
            f"rig {name} refuses orders that name the checkpoint of {held.size} events that is kept"
            " here: its ledger has lost events or was rewritten, and this is the proof; ask its"
            " owner for a backup. Only where he says that they were given up (thermite ledger"
            f" accept-loss), keep the proof and begin anew: {set_aside(home, rig)}"
        )
