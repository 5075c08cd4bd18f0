"""The accesses of a rig, as its owner sets, lists and removes them by hand.

What comes in is a secret, and nothing of it goes out again: only the supervisor reads these
files, when the harness has asked for a fetch that names one.
Source: ledger and signing, 3.9 "Access".
"""

import base64
import binascii
import os
import re
import secrets
import ssl
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from thermite.errors import NotFoundError, UsageError
from thermite.schema.access import FOLDER, MOST_BYTES, Access, check_access, read_access
from thermite.schema.ids import is_name

MOST_ENTRIES: Final = 1000
"""Most entries of the folder that a listing looks at: a rig has a handful of accesses."""
_SUFFIX: Final = ".json"
_OTHERS: Final = 0o077
_IN_A_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KNOWN_HOST: Final = re.compile(r"(?:@(?:cert-authority|revoked) +)?\S+ +(\S+) +(\S+)(?: .*)?")
"""A line of known_hosts (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT): key type, key in base64."""


def set_access(state: Path, name: str, access: Access) -> bool:
    """Keep an access under a name; return whether it took the place of another.

    Raises:
        UsageError: no name, an access that can't be used, or no folder of this user's.
        NotFoundError: there is no rig's folder.
    """
    file = _file(name)
    check_access(access)
    _check_trusted(access)
    raw = msgspec.json.encode(access)
    if len(raw) > MOST_BYTES:
        raise UsageError(f"this access takes {len(raw)} bytes: the most is {MOST_BYTES}")
    with _folder(state, make=True) as folder:
        replaces = _is_there(file, folder)
        _write(file, raw, folder, state / FOLDER)
    return replaces


def accesses(state: Path) -> dict[str, Access | str]:
    """Return the accesses of a rig by name; a text says why one can't be used.

    Raises:
        UsageError: not this user's to read, no folder, or too much in it.
        NotFoundError: there is no rig's folder.
    """
    found: dict[str, Access | str] = {}
    try:
        with _folder(state) as folder, os.scandir(folder) as entries:
            for count, entry in enumerate(entries):
                if count == MOST_ENTRIES:
                    raise UsageError(f"{state / FOLDER} has more than {MOST_ENTRIES} entries")
                name = entry.name.removesuffix(_SUFFIX)
                if name != entry.name and is_name(name):
                    found[name] = _kept(entry.name, folder)
    except FileNotFoundError:
        return {}
    return dict(sorted(found.items()))


def remove_access(state: Path, name: str) -> None:
    """Remove an access.

    Raises:
        NotFoundError: there is none of that name.
        UsageError: not this user's to remove.
    """
    try:
        with _folder(state) as folder:
            os.unlink(_file(name), dir_fd=folder)
    except FileNotFoundError:
        there = ", ".join(accesses(state)) or "none"
        raise NotFoundError(f"this rig has no access {name}: it has {there}") from None
    except OSError as error:
        raise UsageError(
            f"access {name} can't be removed from {state / FOLDER}: {error.strerror}: do it as"
            " the owner of that folder"
        ) from None


@contextmanager
def _folder(state: Path, *, make: bool = False) -> Iterator[int]:
    """Open the folder of accesses itself: a link there would take a secret elsewhere.

    Raises:
        FileNotFoundError: there is no such folder, and it should not be made.
    """
    path = state / FOLDER
    if not state.is_dir():
        raise NotFoundError(f"there is no rig's folder {state}: name it with --state")
    try:
        if make:
            path.mkdir(mode=0o700, exist_ok=True)
        folder = os.open(path, _IN_A_FOLDER)
    except FileNotFoundError:
        raise
    except PermissionError:
        raise UsageError(f"{path} is not yours to use: ask as the rig's owner") from None
    except OSError:
        raise UsageError(
            f"{path} is no folder, or a link to one: accesses are kept in a folder of the rig's own"
        ) from None
    try:
        yield folder
    finally:
        os.close(folder)


def _file(name: str) -> str:
    if not is_name(name):
        raise UsageError(
            f"{name[:80]!a} is no name for an access: use a-z, 0-9, '.', '_' and '-', at most 64"
        )
    return f"{name}{_SUFFIX}"


def _is_there(file: str, folder: int) -> bool:
    try:
        os.stat(file, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _kept(file: str, folder: int) -> Access | str:
    """Return what a file holds, or why the supervisor would not use it; never a word of it."""
    try:
        descriptor = os.open(file, _READ, dir_fd=folder)
    except OSError as error:
        return f"it can't be opened ({error.strerror})"
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            return "it is no plain file"
        if found.st_mode & _OTHERS:
            return f"others may read it (its mode is {stat.S_IMODE(found.st_mode):04o})"
        with os.fdopen(os.dup(descriptor), "rb") as opened:
            raw = opened.read(MOST_BYTES + 1)
    finally:
        os.close(descriptor)
    return read_access(raw[:MOST_BYTES]) or "it holds no access"


def _check_trusted(access: Access) -> None:
    """Refuse certificates and known hosts that would let no server in, or hold a secret."""
    text = access.trusted
    if text is None:
        return
    if "PRIVATE KEY" in text:
        raise UsageError("--trusted is a file of what servers show, and this holds a private key")
    if access.is_ssh:
        lines = [line.strip() for line in text.splitlines()]
        lines = [line for line in lines if line and not line.startswith("#")]
        wrong = [at for at, line in enumerate(lines, 1) if not _is_known_host(line)]
        if wrong or not lines:
            said = f"its line {wrong[0]} is none" if wrong else "it has none"
            raise UsageError(
                f"--trusted needs lines of known_hosts for an ssh address, and {said}: run"
                " ssh-keyscan HOST and compare the fingerprint"
            )
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        raise UsageError(
            "--trusted needs certificates in PEM for an https address, each from"
            " -----BEGIN CERTIFICATE----- on, and they can't be read as such"
        ) from None


def _is_known_host(line: str) -> bool:
    found = _KNOWN_HOST.fullmatch(line.replace("\t", " "))
    if found is None:
        return False
    kind = found[1].encode("utf-8", "surrogateescape")
    try:
        key = base64.b64decode(found[2], validate=True)
    except (binascii.Error, ValueError):
        return False
    return key.startswith(len(kind).to_bytes(4, "big") + kind)


def _write(file: str, raw: bytes, folder: int, path: Path) -> None:
    """Put a file in place whole, 0600, and its folder's owner's: that is the supervisor."""
    beside = f".{file}.{secrets.token_hex(8)}"
    try:
        descriptor = os.open(beside, _WRITE, 0o600, dir_fd=folder)
    except PermissionError:
        raise UsageError(f"{path} is not yours to write in: ask as its owner") from None
    try:
        with os.fdopen(descriptor, "wb") as opened:
            os.fchmod(descriptor, 0o600)
            owner = os.fstat(folder)
            if owner.st_uid != os.geteuid():
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
            opened.write(raw)
            opened.flush()
            os.fsync(descriptor)
        os.replace(beside, file, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)
    except OSError as error:
        with suppress(FileNotFoundError):  # it has its name already
            os.unlink(beside, dir_fd=folder)
        raise UsageError(f"{path / file} can't be replaced: {error.strerror}") from None
