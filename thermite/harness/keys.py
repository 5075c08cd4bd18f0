"""The rig's two secrets: the key that signs its checkpoints and receipts, and the coin's.

Both are made once, 0600, and never leave the folder. Losing them means a new rig: the page
"Files of a rig" says so. Source: ledger and signing, 3.1; judging, 3.1.
"""

import os
import secrets
from pathlib import Path
from typing import Final

from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError

COIN_BYTES: Final = 32
"""judging, 3.1: 32 random bytes."""


def rig_key(keys: Path, *, fresh: bool) -> SigningKey:
    """Return the rig's key; fresh: make it when there is none.

    Raises:
        LedgerError: there is no key, and a ledger that it signed.
    """
    path = keys / "rig.key"
    if not path.exists():
        _refuse_unless(path, fresh=fresh)
        _write_once(path, SigningKey.generate().pem(None))
    return SigningKey.from_pem(path.read_bytes(), None)


def coin_key(keys: Path, *, fresh: bool) -> bytes:
    """Return the 32 bytes that make the order seeds; fresh: make them when there are none.

    Raises:
        LedgerError: they are gone, or not 32 bytes.
    """
    path = keys / "coin.key"
    if not path.exists():
        _refuse_unless(path, fresh=fresh)
        _write_once(path, secrets.token_bytes(COIN_BYTES))
    raw = path.read_bytes()
    if len(raw) != COIN_BYTES:
        raise LedgerError(f"{path} has {len(raw)} bytes, not {COIN_BYTES}: restore it")
    return raw


def _refuse_unless(path: Path, *, fresh: bool) -> None:
    if not fresh:
        raise LedgerError(f"{path} is gone, and the ledger beside it needs it: restore it")


def _write_once(path: Path, raw: bytes) -> None:
    """Write a secret so that a crash leaves either all of it or nothing."""
    half = path.with_suffix(".half")
    half.unlink(missing_ok=True)
    fd = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())
    half.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
