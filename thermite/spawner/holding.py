"""Leases whose files somebody has thrown away while the rig runs are made again, or missed.

A lock is on a file and not on its path: who empties /run/thermite takes no lock away, but lets
another rig lease the same numbers. So a stage begins only where its slot's lease is still to be
seen, and the others are looked at every few seconds.
"""

import sys

from .ground import Ground, Slot
from .settings import BadSettingsError
from .uids import REAPER
from .vocabulary import RefusedError


def hold_leases(ground: Ground, slot: Slot) -> None:
    """Make sure that nobody else can lease a slot's user, or the killer's.

    Raises:
        RefusedError: somebody else has; the slot is quarantined.
    """
    if slot.identity is not None:
        for name in (slot.name, REAPER):
            _hold(ground, name)


def hold_all_leases(ground: Ground) -> None:
    """Do so for every lease of this rig; a slot whose number is lost is quarantined."""
    for name in [] if ground.level.leases is None else [*ground.level.leases.held]:
        try:
            _hold(ground, name)
        except RefusedError as refusal:
            sys.stderr.write(f"thermite spawner: {refusal}\n")


def _hold(ground: Ground, name: str) -> None:
    leases = ground.level.leases
    if leases is None:
        return
    try:
        is_held = leases.renew(name)
    except (OSError, BadSettingsError) as error:
        raise RefusedError(f"isolation: the lease of {name} can't be made again: {error}") from None
    if not is_held:
        lost = (
            f"isolation: uid {leases.held[name]} of {name} has been leased to another rig,"
            f" since its file was removed from {leases.folder} while this rig ran"
        )
        for slot in ground.slots.values():
            if name in {slot.name, REAPER}:
                slot.quarantined = slot.quarantined or lost
        raise RefusedError(lost)
