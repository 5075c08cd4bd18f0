"""Which CPUs timed runs are pinned to and which cards they see, before a spawner is told.

`THERMITE_RUN_CPUS` goes before `cpus` of rig.toml, and that before the CPUs near the rig's
cards; where none of them says anything, the spawner takes the last CPU.
Source: Kit manifest, Processes (K-104).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from thermite.errors import UsageError
from thermite.rig.device import cuda
from thermite.schema.rig_settings import RigSettings

VARIABLE: Final = "THERMITE_RUN_CPUS"


def timed_as(settings: RigSettings, *, devices: Path = cuda.DEVICES) -> dict[str, Any]:
    """Return the fields of a `SpawnerConfig` by which runs are timed as this rig times them.

    Raises:
        UsageError: a card or a CPU of rig.toml is not there, or cards are too few.
    """
    cards = _judge_cards(settings, devices)
    return {
        "run_cpus": timed_cpus(settings, devices=devices),
        "slot_env": {f"run-{i}": card.variables for i, card in enumerate(cards)},
        "cards": [card.number for card in cards],
        "stage_path": settings.stage_path,
        "realtime_runs": settings.realtime_runs,
    }


def _judge_cards(settings: RigSettings, devices: Path) -> list[cuda.Card]:
    """Return the card of each slot of runs, in their order; none where rig.toml names none."""
    runs, named = settings.slots.runs, len(settings.cards)
    if settings.target != cuda.TARGET or not settings.cards:
        return []
    if runs > named:
        raise UsageError(
            f"rig.toml has {runs} slots of runs and {named} cards: each slot has a card of its own"
        )
    return cuda.judge_cards(settings.cards[:runs], devices)


def timed_cpus(
    settings: RigSettings,
    *,
    environment: Mapping[str, str] = os.environ,
    allowed: frozenset[int] | None = None,
    devices: Path = cuda.DEVICES,
) -> list[int] | None:
    """Return the CPUs of timed runs, None where the spawner decides.

    Args:
        settings: the rig's.
        environment: where the variable may stand; the spawner reads it itself.
        allowed: the CPUs that this process may use, as the kernel has it unless given.
        devices: the kernel's folder of PCI devices.

    Raises:
        UsageError: a card is not there, or no CPU near it may be used.
    """
    if environment.get(VARIABLE):
        return None
    if settings.cpus is not None or settings.target != cuda.TARGET:
        return settings.cpus
    may_use = frozenset(os.sched_getaffinity(0)) if allowed is None else allowed
    near = cuda.near_cpus(settings.cards, devices)
    if not near:
        return None
    if not near & may_use:
        raise UsageError(
            f"the CPUs near the cards are {sorted(near)}, and this process may use"
            f" {sorted(may_use)}: set cpus in rig.toml or {VARIABLE}"
        )
    return sorted(near & may_use if may_use - near else _all_but_one(may_use))


def _all_but_one(cpus: frozenset[int]) -> frozenset[int]:
    """Leave the rig a CPU of its own: one that is as near as the others."""
    return cpus - {min(cpus)} if len(cpus) > 1 else cpus
