"""What the builder finds in its folder: the commit's files and the kit's, under `.kit`.

Source: the reference page "Kit manifest", Processes; the design page on isolation, 4.1,
Source export.
"""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from thermite.errors import InfrastructureError
from thermite.schema.stage import Entry


def source_entries(
    tree: Iterable[Entry], kit_folder: Path, copy: Sequence[str], outputs: Sequence[str]
) -> list[Entry]:
    """Return the entries of the builder's folder.

    Declared outputs that the commit already holds are left out, so that a build which
    makes nothing can't pass with them.

    Args:
        tree: the commit's own files, refused ones sorted out before.
        copy: the kit's build.copy, laid out as `.kit/<path>`.
        outputs: the kit's build.outputs.

    Raises:
        InfrastructureError: a path of build.copy is not in the kit or is a link.
    """
    declared = [os.fsencode(path) for path in outputs]
    own = [entry for entry in tree if not any(_covers(path, entry.path) for path in declared)]
    return own + list(_kit_entries(kit_folder, copy))


def _covers(path: bytes, entry: bytes) -> bool:
    return entry == path or entry.startswith(path + b"/")


def _kit_entries(kit_folder: Path, copy: Sequence[str]) -> Iterator[Entry]:
    seen: set[bytes] = set()
    for path in copy:
        for entry in _walk(kit_folder, path):
            if entry.path not in seen:
                seen.add(entry.path)
                yield entry


def _walk(kit_folder: Path, path: str) -> Iterator[Entry]:
    """Yield a kit file, or a folder and all below it, folders before their content."""
    waiting = [path]
    while waiting:
        here = waiting.pop()
        mode = _mode(kit_folder, here)
        name = b".kit/" + os.fsencode(here)
        if stat.S_ISDIR(mode):
            yield Entry(path=name, kind="folder")
            waiting += [f"{here}/{child}" for child in _children(kit_folder / here)]
        else:
            data = (kit_folder / here).read_bytes()
            yield Entry(path=name, kind="executable" if mode & 0o111 else "file", data=data)


def _children(folder: Path) -> list[str]:
    return sorted(child.name for child in folder.iterdir())


def _mode(kit_folder: Path, path: str) -> int:
    """Return the mode of a kit file or folder that is reached through no link."""
    file = kit_folder / path
    try:
        mode = file.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise InfrastructureError(f"kit build.copy: {path} is not in the kit") from None
    through_link = any((kit_folder / parent).is_symlink() for parent in Path(path).parents)
    if through_link or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InfrastructureError(f"kit build.copy: not a regular file or directory: {path}")
    return mode
