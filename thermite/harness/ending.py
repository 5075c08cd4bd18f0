"""How a harness ends that can't go on: what it says, and whether the spawner starts it again.

Whose fault it is decides: what may pass by itself, as a full disk or another writer, is worth
another start, and so is a fault of ours; what somebody has to mend first is not.
"""

import os
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from thermite.errors import (
    InfrastructureError,
    LedgerBusyError,
    LedgerError,
    LedgerUnavailableError,
    ThermiteError,
)
from thermite.ledger.disk import FULL, OF_THE_DISK
from thermite.schema.child_exit import REFUSED

FAILED: Final = 1
FAULT: Final = 70
"""sysexits(3), EX_SOFTWARE."""
MAY_PASS: Final = (InfrastructureError, LedgerBusyError, LedgerUnavailableError)
"""What another start may find gone, though nobody has mended anything."""


@dataclass(frozen=True)
class Ending:
    """An exit code, and what is said on stderr."""

    code: int
    said: str


def not_begun(error: ThermiteError | OSError, state: Path | None) -> Ending:
    """Return how a harness ends that could not open its rig; state: the rig's folder."""
    if isinstance(error, OSError):
        code = REFUSED if isinstance(error, PermissionError) else FAILED
        return Ending(code, _of_the_system(error, state))
    return Ending(FAILED if isinstance(error, MAY_PASS) else REFUSED, str(error))


def cut_short(error: BaseException, state: Path) -> Ending:
    """Return how a harness ends that was at work; the next one goes on where the ledger ends."""
    if isinstance(error, LedgerError):
        return Ending(FAILED, str(error))
    if isinstance(error, OSError) and error.errno in OF_THE_DISK:
        return Ending(FAILED, f"{_of_the_system(error, state)}; nothing was promised")
    told = "".join(traceback.format_exception(error)).rstrip()
    return Ending(FAULT, f"a fault of ours; it is started again and goes on:\n{told}")


def _of_the_system(error: OSError, state: Path | None) -> str:
    """Return an error of the operating system in words, with what to do about it."""
    where = error.filename or state
    remedy = ""
    if error.errno in FULL:
        remedy = f": make room in {state}"
    elif error.errno in OF_THE_DISK:
        remedy = f": look after the disk in {state}"
    elif isinstance(error, PermissionError):
        remedy = f": let user {os.geteuid()} use it, whose harness this is"
    return f"{where}: {error.strerror}{remedy}"
