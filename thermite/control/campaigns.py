"""Orders about a campaign that runs: which one is meant, and what becomes of the order.

Control never reads a rig's ledger: it knows a campaign from the order it sent and from the
rig's receipts.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from thermite.command.keyring import SigningKey
from thermite.control.assign import send_order
from thermite.control.home import ControlHome
from thermite.control.order import Order, sign_order
from thermite.control.receipts import KeptReceipt, after, collect, sent_orders
from thermite.control.rigs import KnownRig
from thermite.errors import NotFoundError, UsageError
from thermite.schema.command import CommandType, Outcome
from thermite.schema.strict import Strict

_WHOLE = re.compile("[0-9a-f]{32}")
_NOTHING: Final = "no answer yet"
_WORDS: Final[Mapping[Outcome, str]] = {"finished": "ended"}
"""Outcomes that are not a campaign's own words (reference page Verdicts, states)."""


class SentCampaign(Strict):
    """A campaign that control has sent to a rig; outcome: the rig's newest word on it.

    It is a receipt's outcome, but that a campaign is called `ended` here as in its status: what a
    receipt calls `finished` is the order.
    """

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
) -> tuple[Order, str]:
    """Sign an order, put it into the rig's inbox, and return it with its file's name there.

    Raises:
        UnreachableError: the inbox is not there, or can't be written.
    """
    order = sign_order(
        kind, body, rig=rig, keys=[key], after=after(home, rig), now=datetime.now(UTC)
    )
    return order, send_order(home, rig, order)


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
        outcome=_NOTHING if newest is None else _WORDS.get(newest.outcome, newest.outcome),
        message=None if newest is None else newest.message,
    )
