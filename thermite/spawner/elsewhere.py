"""A stage root outside the rig's folder, and the note in the rig's folder that remembers it.

Where stages can't reach the rig's folder, a fresh folder is made for them; a spawner that dies
leaves it, and the next one of this rig finds it by the note. Only the spawner writes where the
note lies (0711), so no stage can name a folder to be emptied.
"""

import contextlib
import os
import re
import stat
from typing import Final

from .settings import Settings

_NOTE: Final = ".elsewhere"
_MOST_BYTES: Final = 1 << 16
_NAME_BYTES: Final = 8
_OURS: Final = re.compile(r"/.*/thermite-[0-9a-f]{16}")


def new_root(settings: Settings) -> str:
    """Return the path of a root to be made, which is noted first."""
    path = f"{settings.fallback_root}/thermite-{os.urandom(_NAME_BYTES).hex()}"
    _write(settings, [*noted_roots(settings), path])
    return path


def noted_roots(settings: Settings) -> list[str]:
    """Return the roots that are noted: those of dead spawners, and the one that is in use."""
    try:
        with open(f"{settings.stage_root}/{_NOTE}", "rb") as file:
            lines = file.read(_MOST_BYTES).decode("utf-8", "surrogateescape").splitlines()
    except FileNotFoundError:
        return []
    return [line for line in lines if _OURS.fullmatch(line)]


def is_still_ours(path: str) -> bool:
    """Return whether a noted root is there and a folder of this user's, not somebody's link."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def forget_root(settings: Settings, path: str) -> None:
    """Take a root that is gone out of the note."""
    _write(settings, [one for one in noted_roots(settings) if one != path])


def _write(settings: Settings, paths: list[str]) -> None:
    note = f"{settings.stage_root}/{_NOTE}"
    if not paths:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(note)
        return
    with open(f"{note}.new", "wb") as file:
        file.write("".join(f"{path}\n" for path in paths).encode("utf-8", "surrogateescape"))
    os.replace(f"{note}.new", note)
