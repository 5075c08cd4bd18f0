"""What a rig says of its trust, and orders about it that it would refuse.

The rig decides; these checks spare the sender an order that comes back refused, perhaps
when a stolen key should long have been out. Source: ledger and signing, 3.9 step 6 and 3.11.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from thermite.command.instant import read_instant
from thermite.command.keyring import PublicKey
from thermite.command.verify import key_problem_now
from thermite.control.home import ControlHome
from thermite.control.receipts import receipt_for, sent_orders
from thermite.control.rigs import KnownRig, known_rig, refreshed
from thermite.control.waiting import LOOK_EVERY_S
from thermite.errors import NotFoundError, UnreachableError, UsageError
from thermite.schema.command import CommandType, Trust, TrustedKey
from thermite.schema.ids import Sha256

ABOUT_TRUST: Final = frozenset({"update_trust", "revoke_key"})
ANSWER_S: Final = 10.0
"""How long their answer is waited for, s: a rig that serves looks every 5 s at the latest."""
YOUNG: Final = timedelta(minutes=1)
"""Older ones without an answer are those of a rig that does not serve (our figure)."""


def rig_trust(home: ControlHome, name: str) -> Trust | None:
    """Return whom a rig trusts by its card, or None when its card can't be had or says nothing.

    An order about trust that control has just sent is waited for a moment: until the rig has
    decided it, its card tells of the trust before. The card is written before the receipt.

    Raises:
        NotFoundError: control knows no such rig.
        RigChangedError: the card is not signed by the key that control knows.
    """
    try:
        _wait_for_own(home, known_rig(home, name))
        return refreshed(home, name)[1].trust
    except UnreachableError:
        return None


def _wait_for_own(home: ControlHome, rig: KnownRig) -> None:
    """Wait until the rig has answered what control sent it about trust a moment ago."""
    young = datetime.now(UTC) - YOUNG
    waiting = [
        order
        for order in sent_orders(home, rig)
        if order.type in ABOUT_TRUST and read_instant(order.at) >= young
    ]
    end = time.monotonic() + ANSWER_S
    while waiting and time.monotonic() < end:
        waiting = [order for order in waiting if not _is_decided(rig, Sha256(order.digest))]
        if waiting:
            time.sleep(LOOK_EVERY_S)


def _is_decided(rig: KnownRig, digest: Sha256) -> bool:
    found = receipt_for(rig, digest)
    return found is not None and found.outcome != "waiting"


def check_signer(trust: Trust, key: PublicKey, kind: CommandType, now: datetime) -> None:
    """Refuse to send what the rig would refuse for the key that issues it.

    Raises:
        UsageError: the rig does not trust the key with this kind of order.
    """
    found = next((one for one in trust.keys if one.public == key.base64), None)
    if found is None:
        raise UsageError(
            f"this rig does not trust key {key.id}, which signs: it trusts {_named(trust.keys)};"
            " choose one of them with --key"
        )
    problem = key_problem_now(found, kind, now)
    if problem is not None:
        roots = [one for one in trust.keys if "root" in one.roles]
        raise UsageError(f"{problem[1]}: sign with --key by the root, {_named(roots)}")


def check_version(trust: Trust, version: int) -> None:
    """Refuse to send a version of the trust that is not the rig's next.

    Raises:
        UsageError: it is another one.
    """
    if version != trust.version + 1:
        raise UsageError(
            f"this would be trust version {version}, and the rig has version {trust.version}: give"
            f" --version {trust.version + 1}"
        )


def check_keys(
    trust: Trust, keys: Sequence[TrustedKey], signers: Sequence[PublicKey], *, readmit: bool
) -> None:
    """Refuse to send whom the rig would refuse as root, or who comes back unnoticed.

    Args:
        keys: of the next trust; signers: who signs it; readmit: a revoked key is meant.

    Raises:
        UsageError: the new root does not sign, or the rig has revoked one of the keys.
    """
    root = next((one for one in keys if "root" in one.roles), None)
    if root is not None and root.public not in {one.base64 for one in signers}:
        raise UsageError(
            f"key {root.id} ({root.label}) becomes root and does not sign: give its key file to"
            " thermite key rotate --new-root"
        )
    gone = {one.id: one for one in trust.keys if one.revoked_since is not None}
    back = [gone[one.id] for one in keys if one.id in gone and one.revoked_since is None]
    if back and not readmit:
        raise UsageError(
            f"this rig has revoked {_named(back)}, and orders of such a key would be accepted"
            " again: take its line out of the file, or say --readmit"
        )


def check_revocation(trust: Trust, key: str, since: str) -> None:
    """Refuse to revoke what no order can take out of this rig's trust.

    Args:
        key: its id; since: RFC 3339.

    Raises:
        NotFoundError: the rig trusts no such key.
        UsageError: it is the root, or revoked since that very time.
    """
    found = next((one for one in trust.keys if one.id == key), None)
    if found is None:
        raise NotFoundError(f"this rig trusts no key {key}: it trusts {_named(trust.keys)}")
    if "root" in found.roles:
        raise UsageError(
            f"key {key} is this rig's root, which can't be revoked: make another key the root with"
            " thermite key rotate, and leave this one out of its file"
        )
    if found.revoked_since == since:
        raise UsageError(f"key {key} is revoked since {since} already")


def read_since(told: str, now: datetime) -> datetime:
    """Return the moment since when a key is not trusted.

    Raises:
        UsageError: it is no moment, or one that is still to come.
    """
    try:
        since = read_instant(told)
    except ValueError as error:
        raise UsageError(f"--since {told}: {error}") from None
    if since > now:
        raise UsageError(
            f"--since {told} is still to come, and a key is revoked at once: name when it was last"
            " safe, or leave --since out"
        )
    return since


def _named(keys: Sequence[TrustedKey]) -> str:
    return ", ".join(f"{key.id} ({key.label})" for key in keys) or "none"
