"""What a run may see of the kit: plain copies of the run.copy paths, nothing else.

Source: the reference page "Kit manifest", Processes; kit requirements K-106 to K-108.
"""

import stat
from collections.abc import Sequence
from pathlib import Path

from thermite.errors import InfrastructureError


def gather(kit_folder: Path, copy: Sequence[str], into: Path) -> None:
    """Copy the run.copy paths into an empty folder, where a run finds them as `{kit:<path>}`.

    Raises:
        InfrastructureError: a path is not in the kit, or there is a link among the files.
    """
    waiting = list(dict.fromkeys(copy))
    while waiting:
        path = waiting.pop()
        mode = _mode(kit_folder, path)
        target = into / path
        if stat.S_ISDIR(mode):
            target.mkdir(parents=True, exist_ok=True)
            waiting += [f"{path}/{child}" for child in _children(kit_folder / path)]
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((kit_folder / path).read_bytes())
            target.chmod(0o755 if mode & 0o111 else 0o644)


def _children(folder: Path) -> list[str]:
    return sorted(child.name for child in folder.iterdir())


def _mode(kit_folder: Path, path: str) -> int:
    """Return the mode of a kit file or folder that is reached through no link."""
    file = kit_folder / path
    try:
        mode = file.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise InfrastructureError(f"kit run.copy: {path} is not in the kit") from None
    through_link = any((kit_folder / parent).is_symlink() for parent in Path(path).parents)
    if through_link or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InfrastructureError(f"kit run.copy: not a regular file or directory: {path}")
    return mode
