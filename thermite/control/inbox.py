"""What lies in a rig's inbox, as far as this user may see it."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

from thermite.control.drop import ORDER_SUFFIX, drop_bytes, drop_file, order_name
from thermite.errors import NotFoundError, UnreachableError, UsageError
from thermite.schema.command import MAX_COMMAND_BYTES
from thermite.schema.strict import Strict

FOLDERS: Final = ("new", "work", "done", "refused")
MOST_LISTED: Final = 10_000
"""Most files of one folder that are listed."""


class Lying(Strict):
    """One file of an inbox; size: bytes."""

    folder: Literal["new", "work", "done", "refused"]
    name: str
    size: int


def drop_files(inbox: Path, files: Iterable[Path]) -> list[str]:
    """Put files into an inbox, orders last and under random names; return the names there.

    Raises:
        NotFoundError: one of the files is not there; nothing was dropped.
        UnreachableError: the inbox is not there, or can't be written.
        UsageError: an order larger than a rig reads, a hidden file, or no room.
    """
    given = list(files)
    for file in given:
        _check(file)
    others = [file for file in given if not file.name.endswith(ORDER_SUFFIX)]
    for file in others:
        drop_file(inbox, file.name, file)
    names = [file.name for file in others]
    for file in given:
        if file.name.endswith(ORDER_SUFFIX):
            names.append(order_name())
            drop_bytes(inbox, names[-1], file.read_bytes())
    return names


def lying(inbox: Path) -> tuple[list[Lying], list[str]]:
    """Return the files of an inbox, and the folders of it that this user may not list.

    Raises:
        UnreachableError: there is no inbox.
    """
    if not (inbox / "new").is_dir():
        raise UnreachableError(f"{inbox} is no inbox: it has no folder new")
    found: list[Lying] = []
    closed = []
    for folder in FOLDERS:
        try:
            found += _list(inbox / folder, folder)
        except PermissionError:
            closed.append(folder)
    return found, closed


def _list(path: Path, folder: Literal["new", "work", "done", "refused"]) -> list[Lying]:
    if not path.is_dir():
        return []
    with os.scandir(path) as listing:
        entries = [entry for _, entry in zip(range(MOST_LISTED), listing, strict=False)]
    return [
        Lying(folder=folder, name=entry.name, size=entry.stat(follow_symlinks=False).st_size)
        for entry in sorted(entries, key=lambda one: one.name)
    ]


def _check(file: Path) -> None:
    if not file.is_file():
        raise NotFoundError(f"there is no file {file}: nothing was dropped")
    if file.name.startswith("."):
        raise UsageError(f"{file.name} begins with a dot, and a rig passes over such files")
    size = file.stat().st_size
    if file.name.endswith(ORDER_SUFFIX) and size > MAX_COMMAND_BYTES:
        raise UsageError(
            f"{file} has {size} bytes, and a rig reads orders of at most {MAX_COMMAND_BYTES}"
        )
