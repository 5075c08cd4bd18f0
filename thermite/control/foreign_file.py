"""A file that somebody else has put somewhere: read to a bound, and never waited for."""

import errno
import os
import stat
from pathlib import Path


def read_foreign(path: Path, *, most_bytes: int) -> bytes:
    """Return a plain file's bytes, at most one more than these.

    Raises:
        FileNotFoundError: there is none.
        OSError: it can't be read, or is no plain file: a pipe would be waited for.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no plain file", str(path))
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(most_bytes + 1)
    finally:
        os.close(descriptor)
