"""Things too large for an event, each by its SHA-256, whole and synced before it is named."""

import os
import secrets
from pathlib import Path


def keep_blob(folder: Path, name: str, raw: bytes) -> None:
    """Keep bytes under a name; the same name twice is once.

    Raises:
        OSError: the disk refuses; nothing is there under that name.
    """
    target = folder / name
    if target.exists():
        return
    half = folder / f".half-{secrets.token_hex(8)}"
    try:
        descriptor = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        half.rename(target)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(here)
    finally:
        os.close(here)
