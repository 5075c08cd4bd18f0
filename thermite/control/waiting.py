"""Wait for a rig's answer to one order."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from thermite.control.foreign_file import read_foreign
from thermite.control.order import Order
from thermite.control.receipts import receipt_for
from thermite.control.rigs import KnownRig
from thermite.schema.command import Receipt
from thermite.schema.strict import Strict
from thermite.schema.strict_json import NotStrictJson, read, shown

LOOK_EVERY_S: Final = 0.2
"""How often the outbox is looked at: a name lookup in one folder."""
SAY_EVERY_S: Final = 20.0
"""How often a waiting person is told what is waited for (known faults, U7: at least every 30 s)."""
_MOST_REASON: Final = 1 << 16
_NOTHING: Final = "no answer yet"


class Turned(Strict):
    """A file that was moved aside before its sender was known: no receipt, only a reason."""

    code: str
    message: str


def wait_for(
    rig: KnownRig, order: Order, file: str, *, most_s: float, tell: Callable[[str], None]
) -> Receipt | Turned | None:
    """Return the decision on an order, or None when there is none in time.

    Args:
        rig: where it was sent.
        order: what was sent.
        file: its name in the inbox.
        most_s: the longest wait, s.
        tell: gets a line when the rig makes the order wait, and now and then.

    Raises:
        UnreachableError: the outbox is not there.
    """
    began = told = time.monotonic()
    said = _NOTHING  # that needs no saying at once
    while True:
        receipt = receipt_for(rig, order.digest)
        if receipt is not None and receipt.outcome != "waiting":
            return receipt
        turned = _turned_away(rig, file)
        if turned is not None:
            return turned
        now = time.monotonic()
        if now - began >= most_s:
            return None
        text = f"the rig waits: {receipt.message}" if receipt is not None else _NOTHING
        if text != said or now - told >= SAY_EVERY_S:
            tell(f"{text} ({now - began:.0f} s)")
            said, told = text, now
        time.sleep(LOOK_EVERY_S)


def _turned_away(rig: KnownRig, file: str) -> Turned | None:
    """Return the reason beside the refused file, where this user may look for it."""
    refused, own = Path(rig.inbox) / "refused", f"-{file}.reason.json"
    try:
        reasons = [path for path in refused.iterdir() if path.name.endswith(own)]
        raw = read_foreign(reasons[0], most_bytes=_MOST_REASON) if reasons else b""
    except OSError:
        return None  # as another user than the rig's: its receipt is all that can be had
    return _reason(raw) if raw else None


def _reason(raw: bytes) -> Turned | None:
    try:
        found = read(raw, most_bytes=_MOST_REASON, most_levels=4)
    except NotStrictJson:
        return None  # half written: the next look finds it whole
    if not isinstance(found, dict):
        return None
    code, message = found.get("code"), found.get("message")
    return Turned(code=shown(str(code))[1:-1], message=str(message)[:4000])
