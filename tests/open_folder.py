"""A folder that every user may pass through, as stages and their rig need it."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """Lend a fresh one that is gone at the end, on a disk, where no user's own folder is around."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="thermite-test-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        yield folder
