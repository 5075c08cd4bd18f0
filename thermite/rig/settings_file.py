"""`rig.toml` as it lies in a rig's folder: read as the plain file that it must be, or not there."""

import os
import stat
from pathlib import Path
from typing import Final

from thermite.errors import UsageError
from thermite.schema.rig_settings import MAX_BYTES, RigSettings, read_rig_settings

SETTINGS: Final = "rig.toml"
_READ: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe would be waited for


def settings_in(state: Path) -> RigSettings | None:
    """Return what a rig's owner has set, None when there is no rig.toml.

    Raises:
        UsageError: it is no plain file, can't be read, or holds no settings.
    """
    path = state / SETTINGS
    try:
        descriptor = os.open(path, _READ)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageError(
                f"{path} is no plain file, as a rig's settings are: move it away, and thermite rig"
                " serve writes a new one"
            )
        with os.fdopen(os.dup(descriptor), "rb") as file:
            raw = file.read(MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    return read_rig_settings(raw, str(path))
