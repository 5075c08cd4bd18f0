"""The accesses of a rig, as its owner sets, lists and removes them by hand.

What comes in is a secret, and nothing of it goes out again: only the supervisor reads these
files, when the harness has asked for a fetch that names one.
Source: ledger and signing, 3.9 "Access".
"""

import os
import secrets
from pathlib import Path
from typing import Final

import msgspec

from thermite.errors import NotFoundError, UsageError
from thermite.schema.access import FOLDER, Access, check_access, read_access
from thermite.schema.ids import is_name

_SUFFIX: Final = ".json"


def set_access(state: Path, name: str, access: Access) -> bool:
    """Keep an access under a name; return whether it took the place of another.

    Raises:
        UsageError: no name, an access that can't be used, or no rig's folder.
    """
    path = _path(state, name)
    check_access(access)
    folder = path.parent
    if not state.is_dir():
        raise NotFoundError(f"there is no rig's folder {state}: name it with --state")
    folder.mkdir(mode=0o700, exist_ok=True)
    replaces = path.exists()
    _write(path, msgspec.json.encode(access))
    return replaces


def accesses(state: Path) -> dict[str, Access | None]:
    """Return the accesses of a rig by name; None stands for a file that holds none.

    Raises:
        UsageError: not this user's to read.
    """
    folder = state / FOLDER
    try:
        names = sorted(path.stem for path in folder.glob(f"*{_SUFFIX}") if is_name(path.stem))
        return {name: read_access(_path(state, name).read_bytes()) for name in names}
    except PermissionError:
        raise UsageError(f"{folder} is not yours to read: ask as the rig's owner") from None


def remove_access(state: Path, name: str) -> None:
    """Remove an access.

    Raises:
        NotFoundError: there is none of that name.
    """
    try:
        _path(state, name).unlink()
    except FileNotFoundError:
        there = ", ".join(accesses(state)) or "none"
        raise NotFoundError(f"this rig has no access {name}: it has {there}") from None
    except PermissionError:
        raise UsageError(f"{state / FOLDER} is not yours to change: ask as its owner") from None


def _path(state: Path, name: str) -> Path:
    if not is_name(name):
        raise UsageError(
            f"{name[:80]!a} is no name for an access: use a-z, 0-9, '.', '_' and '-', at most 64"
        )
    return state / FOLDER / f"{name}{_SUFFIX}"


def _write(path: Path, data: bytes) -> None:
    """Put a file in place whole, 0600, and its folder's owner's: that is the supervisor."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(beside, flags, 0o600)
    except PermissionError:
        raise UsageError(f"{path.parent} is not yours to write in: ask as its owner") from None
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, 0o600)
        owner = path.parent.stat()
        if owner.st_uid != os.geteuid():
            os.fchown(descriptor, owner.st_uid, owner.st_gid)
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    beside.replace(path)
