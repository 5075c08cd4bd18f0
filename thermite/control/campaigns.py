"""Orders about a campaign that runs: which one is meant, and what becomes of the order.

Control never reads a rig's ledger: it knows a campaign from the order it sent and from the
rig's receipts.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from thermite.command.keyring import SigningKey
from thermite.control.assign import send_order
from thermite.control.home import ControlHome
from thermite.control.order import Order, sign_order
from thermite.control.receipts import KeptReceipt, after, collect, sent_orders
from thermite.control.rigs import KnownRig
from thermite.control.waiting import Turned, wait_for
from thermite.errors import NotFoundError, UsageError
from thermite.schema.command import CommandType, Receipt
from thermite.schema.strict import Strict

_WHOLE = re.compile("[0-9a-f]{32}")


class SentCampaign(Strict):
    """A campaign that control has sent to a rig; outcome: the rig's newest word on it."""

    assignment: str
    at: str
    outcome: str
    message: str | None


def sent_campaigns(home: ControlHome, rig: KnownRig) -> list[SentCampaign]:
    """Return the campaigns that control has sent to a rig, the oldest first.

    Raises:
        UnreachableError: the rig's outbox is not there.
    """
    found = collect(home, rig)
    orders = [order for order in sent_orders(home, rig) if order.type == "assign_campaign"]
    return [_campaign(order.digest, order.at, found) for order in orders]


def chosen(home: ControlHome, rig: KnownRig, wanted: str) -> str:
    """Return the whole id of an assignment from its first digits, or as it stands.

    A whole id need not be one that this control sent.

    Raises:
        NotFoundError: control has sent no such campaign to this rig.
        UsageError: the digits fit several.
    """
    if _WHOLE.fullmatch(wanted):
        return wanted
    orders = [order for order in sent_orders(home, rig) if order.type == "assign_campaign"]
    fits = [order.digest[:32] for order in orders if order.digest.startswith(wanted)]
    if not fits or not wanted:
        raise NotFoundError(
            f"control has sent rig {rig.rig[:12]} no campaign {wanted!a}: thermite campaign list"
            " shows those it has, and a whole id of 32 digits is taken as it stands"
        )
    if len(fits) > 1:
        raise UsageError(
            f"{wanted} fits {len(fits)} campaigns, {', '.join(fits)}: give more digits"
        )
    return fits[0]


def give_order(
    home: ControlHome,
    rig: KnownRig,
    kind: CommandType,
    body: Strict,
    *,
    key: SigningKey,
    most_s: float,
    tell: Callable[[str], None],
) -> tuple[Order, Receipt | Turned | None]:
    """Sign an order, put it into the rig's inbox, and return the answer, None when none came.

    Args:
        most_s: the longest wait, s.
        tell: gets a line while the rig is silent.

    Raises:
        UnreachableError: inbox or outbox are not there.
    """
    order = sign_order(
        kind, body, rig=rig, keys=[key], after=after(home, rig), now=datetime.now(UTC)
    )
    name = send_order(home, rig, order)
    found = wait_for(rig, order, name, most_s=most_s, tell=tell)
    if isinstance(found, Receipt):
        collect(home, rig)
    return order, found


def _campaign(digest: str, at: str, found: Sequence[KeptReceipt]) -> SentCampaign:
    receipts = {
        item.receipt.outcome: item.receipt
        for item in found
        if item.receipt is not None and item.receipt.command.sha256 == digest
    }
    newest = next(
        (receipts[o] for o in ("finished", "refused", "accepted", "waiting") if o in receipts),
        None,
    )
    return SentCampaign(
        assignment=digest[:32],
        at=at,
        outcome="no answer yet" if newest is None else newest.outcome,
        message=None if newest is None else newest.message,
    )
