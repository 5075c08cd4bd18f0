"""What this machine's processor is: a build may hold instructions that only it has."""

import hashlib
from pathlib import Path
from typing import Final

_CPUINFO: Final = Path("/proc/cpuinfo")
_MODEL: Final = ("model name", "Model")
_KIND: Final = ("CPU implementer", "CPU part", "flags", "Features")
"""What a compiler asks for with -march=native, on x86-64 and aarch64."""
_MOST_CHARACTERS: Final = 200


def processor_model() -> str | None:
    """Return the model's name as the kernel tells it, None where it tells none."""
    told = _told()
    return next((told[name] for name in _MODEL if told.get(name)), None)


def processor() -> str:
    """Return one text that changes when the model does, or the instructions that it has."""
    told = _told()
    words = [" ".join(sorted(told.get(name, "").split())) for name in _KIND]
    digest = hashlib.sha256("; ".join(words).encode()).hexdigest()[:8]
    return f"{(processor_model() or 'a processor')[:_MOST_CHARACTERS]} (instructions {digest})"


def _told() -> dict[str, str]:
    """Return what is told of the first processor, and of the machine where nothing else is."""
    told: dict[str, str] = {}
    try:
        lines = _CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return told
    for line in lines:
        name, _, value = line.partition(":")
        told.setdefault(name.strip(), value.strip())
    return told
