"""Finding out which isolation this spawner can apply, and with which users."""

import os

from . import landlock, linux
from .ground import Level, Slot
from .seccomp import NUMBERS
from .settings import BadSettingsError, Settings


def find_level(settings: Settings) -> tuple[Level, dict[str, Slot]]:
    """Return the level and the slots.

    Raises:
        BadSettingsError: the level that was asked for can't be had.
    """
    if settings.isolation == "users":
        raise BadSettingsError(
            "isolation users needs root: run as root, or set THERMITE_ISOLATION=auto"
        )
    return _none(settings)


def _none(settings: Settings) -> tuple[Level, dict[str, Slot]]:
    """Level none: every slot is this user; Landlock and seccomp where the kernel has them."""
    version = landlock.abi()
    features, gaps = ["nnp"], ["clock_lock"] if os.getuid() else []
    if linux.MACHINE in NUMBERS:
        features.append("seccomp")
    if version:
        features.append(f"landlock:{version}")
    gaps.append("unix_sockets")
    if version < landlock.SCOPE_ABI:
        gaps += ["abstract_sockets", "signals"]
    if not version:
        gaps += ["files", "leftovers"]
    network = "seccomp" if "seccomp" in features else "open"
    if network == "open":
        gaps.append("network")
    level = Level("none", features, network, sorted(gaps), version)
    slots = {name: Slot(name, network, None) for name, network in settings.slots.items()}
    return level, slots
