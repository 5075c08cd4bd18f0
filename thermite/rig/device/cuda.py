"""The cuda-gpu driver: which CPUs are near a card, so that its timed runs are pinned there.

What the kernel says of a card stands in sysfs, so that neither the vendor's library nor the
card itself is asked. Of a value, this driver asks what every value must be: finite and above
zero (`judge.measure`).
Source: Kit manifest, Processes; kernel documentation, ABI/testing/sysfs-bus-pci, local_cpulist.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from thermite.errors import UsageError

TARGET: Final = "cuda-gpu"
DEVICES: Final = Path("/sys/bus/pci/devices")
TOLD: Final = Path("/proc/driver/nvidia/gpus")
"""What the vendor's driver tells of each card, by its address."""
VISIBLE: Final = "CUDA_VISIBLE_DEVICES"
_UUID: Final = re.compile(r"^GPU UUID:\s*(GPU-[0-9a-f-]{36})$", re.MULTILINE)
_NVIDIA: Final = "0x10de"
"""The vendor in the PCI registry (pci-ids, 10de)."""
_DISPLAY: Final = "0x03"
"""Base class of display controllers, 3D ones too (PCI Code and ID Assignment, 1.4)."""
_ADDRESS: Final = re.compile(r"0*([0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")
_RANGE: Final = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6}))?")


def near_cpus(cards: Sequence[str], devices: Path = DEVICES) -> frozenset[int]:
    """Return the CPUs near all of the cards; none when the kernel does not tell.

    Args:
        cards: PCI addresses as nvidia-smi or the kernel writes them; none means every card.
        devices: the kernel's folder of PCI devices.

    Raises:
        UsageError: a card of that address is not there; by whoever wrote rig.toml.
    """
    folders = [_folder(card, devices) for card in cards] or _all_cards(devices)
    told = [_cpus(_read(folder / "local_cpulist")) for folder in folders]
    return frozenset.intersection(*told) if told else frozenset()


class Card(NamedTuple):
    """One card: its number in the order of PCI addresses, and what shows it to a program alone.

    number: the machine's own, whoever counts; variables: of a run's environment.
    """

    number: int
    variables: Mapping[str, str]


def judge_cards(cards: Sequence[str], devices: Path = DEVICES, told: Path = TOLD) -> list[Card]:
    """Return the cards of these addresses, in their order.

    A card is shown by its UUID where the driver tells it, else by its number among all cards.

    Raises:
        UsageError: a card of that address is not there; by whoever wrote rig.toml.
    """
    every = _all_cards(devices)
    return [_card(_folder(card, devices), every, told) for card in cards]


def _card(folder: Path, every: Sequence[Path], told: Path) -> Card:
    number = every.index(folder)
    found = _UUID.search(_read(told / folder.name / "information"))
    if found:
        return Card(number, {VISIBLE: found[1]})
    return Card(number, {VISIBLE: str(number), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"})


def _folder(card: str, devices: Path) -> Path:
    found = _ADDRESS.fullmatch(card.lower())
    folder = devices / (f"{found[1]}:{found[2]}:{found[3]}.{found[4]}" if found else "none")
    if folder not in _all_cards(devices):
        there = ", ".join(one.name for one in _all_cards(devices)) or "none"
        raise UsageError(
            f"cards of rig.toml names {card[:80]!a}, and the cards here are {there}: give the"
            " address that nvidia-smi shows as pci.bus_id"
        )
    return folder


def _all_cards(devices: Path) -> list[Path]:
    if not devices.is_dir():
        return []
    return [
        one
        for one in sorted(devices.iterdir())
        if _read(one / "vendor") == _NVIDIA and _read(one / "class").startswith(_DISPLAY)
    ]


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _cpus(text: str) -> frozenset[int]:
    """Return the CPUs of a list such as `0-3,8`; another text names none."""
    found: set[int] = set()
    for part in text.split(","):
        ends = _RANGE.fullmatch(part)
        if ends:
            found.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    return frozenset(found)
