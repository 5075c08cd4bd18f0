"""What the long forms share: a level that must be there, users of their own, one line at a time."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from tests.leased import lease_uids
from tests.levels import why_not
from tests.open_folder import open_folder
from thermite.schema.stage import LevelName

_Found = TypeVar("_Found")


def say(text: str) -> None:
    """Print one line."""
    sys.stdout.write(f"{text}\n")


def at_length(level: LevelName, work: Callable[[Path], _Found]) -> tuple[_Found, float] | None:
    """Return what work in a fresh folder came to, and after how many seconds.

    None where the level can't be had, and why was said.
    """
    problem = why_not(level)
    if problem is not None:
        say(problem)
        return None
    lease_uids()
    began = time.monotonic()
    with open_folder() as place:
        found = work(place)
    return found, time.monotonic() - began
