"""Whether a folder may keep what `thermite judge` finds: the rig's folder of one process.

What lies in it is made, swept and removed as a rig's own. So it is a folder that is new or
empty, or one that an earlier judge kept; never a rig's, whose ledger is for signed orders, and
never a part of what is judged, which would then be judged with it.
"""

import os
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Final

from thermite.errors import UsageError

RIG: Final = ("rig.toml", "inbox", "outbox", "trust.json")
"""A folder with one of these is served, or was (the design page on the system, A rig's folder)."""
OWN: Final = frozenset(
    {"blobs", "exports", "keys", "ledger.lock", "lanes", "models", "repos", "stages", "store"}
)
"""What a judge that was killed early may have left before there was a ledger."""


def check_kept_state(state: Path, judged: Iterable[Path]) -> None:
    """Refuse a folder that is no place for a local job's state.

    Args:
        judged: the folders of kit, project and champion.

    Raises:
        UsageError: it is a rig's, somebody else's, or part of what is judged.
    """
    here = state.resolve()
    for folder in {one.resolve(): one for one in judged}.values():
        there = folder.resolve()
        if here.is_relative_to(there):
            raise UsageError(f"{state} is inside {folder}, which is judged: name a folder outside")
        if there.is_relative_to(here):
            raise UsageError(f"{folder}, which is judged, is inside {state}: name another folder")
    for name in RIG:
        if os.path.lexists(here / name):
            raise UsageError(f"{state} is a rig's, it has {name}: name a new folder")
    ledger = here / "ledger.db"
    if ledger.is_symlink():
        raise UsageError(f"{ledger} is a link: name a new folder")
    if here.is_dir() and not ledger.exists():
        _check_foreign(state, here)


def _check_foreign(state: Path, here: Path) -> None:
    with os.scandir(here) as entries:
        for entry in islice(entries, len(OWN) + 1):
            if entry.name not in OWN:
                raise UsageError(
                    f"{state} is not empty and was not made by thermite judge, it has"
                    f" {entry.name[:80]!r}: name a new folder"
                )
