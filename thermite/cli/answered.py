"""Wait for a rig's answer to an order that was sent, and end the command with it."""

from typing import Any

import msgspec

from thermite.cli.control_side import end_with
from thermite.cli.exits import Exit
from thermite.cli.output import Output
from thermite.control.home import ControlHome
from thermite.control.order import Order
from thermite.control.receipts import collect
from thermite.control.rigs import KnownRig
from thermite.control.waiting import wait_for
from thermite.schema.command import Receipt


def accepted(
    output: Output,
    home: ControlHome,
    rig: KnownRig,
    order: Order,
    *,
    file: str,
    told: dict[str, Any],
    timeout_s: float,
) -> Receipt:
    """Return the receipt by which a rig accepted an order; it is kept, and added to `told`.

    Args:
        file: the order's name in the inbox; told: what the command's document says so far.
        timeout_s: the longest wait, s.

    Raises:
        CommandEnds: refused, or no answer in time; the document is printed.
        UnreachableError: the outbox is not there.
    """
    found = wait_for(rig, order, file, most_s=timeout_s, tell=output.progress)
    if found is None:
        late = f"no answer in {timeout_s:g} s: is the rig on? See thermite receipts list"
        end_with(output, told, Exit.TIMEOUT, late)
    if not isinstance(found, Receipt):
        end_with(output, told, Exit.REFUSED, f"{found.code}: {found.message}")
    collect(home, rig)
    told["receipt"] = msgspec.to_builtins(found)
    if found.outcome == "refused":
        end_with(output, told, Exit.REFUSED, f"{found.code}: {found.message}")
    for warning in found.warnings:
        output.warn(warning)
    return found
