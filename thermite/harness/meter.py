"""What an attempt has spent by now, in a file that outlives a kill of its harness.

A budget's event comes when the spending is over, and a kill before that would lose it: a campaign
that is killed again and again would spend without end. So the seconds are written down while
they pass, each that has begun as a whole one, and the next harness counts them. Nothing is synced:
this outlives processes, not the machine. The file is gone when the event is durable.
"""

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from thermite.harness import clock

EVERY_S: Final = 1.0
"""How often the seconds are written down, and so the most that a kill counts too much, s."""
MOST_BYTES: Final = 32
_MOST_S: Final = 1e9
"""Three decades: more is no meter's (our figure)."""


class Meter:
    """The seconds of one spending of one attempt.

    carried_s: what was spent on it by harnesses that were killed meanwhile.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.carried_s = read_meter(path)
        self._begun_ns: int | None = None
        self._ended_ns = 0

    @property
    def spent_s(self) -> float:
        """What was spent in all, s; while it runs, until now."""
        if self._begun_ns is None:
            return self.carried_s
        return self.carried_s + ((self._ended_ns or clock.mono_ns()) - self._begun_ns) / 1e9

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Count while the block runs, however it ends."""
        self._begun_ns = clock.mono_ns()
        over = threading.Event()
        thread = threading.Thread(target=self._write_down, args=(over,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended_ns = clock.mono_ns()
            over.set()
            thread.join()
            self._write(self.spent_s)

    def forget(self) -> None:
        """Remove the file: what it says is an event now."""
        self._path.unlink(missing_ok=True)

    def _write_down(self, over: threading.Event) -> None:
        while not over.is_set():
            self._write(self.spent_s + EVERY_S)
            over.wait(EVERY_S)

    def _write(self, seconds: float) -> None:
        """Write in place what always has the same length: a disk that is full has room for it."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with contextlib.suppress(OSError):  # no reason to end the work; the ledger will say so
            descriptor = os.open(self._path, flags, 0o600)
            try:
                os.pwrite(descriptor, b"%020.6f\n" % min(seconds, _MOST_S), 0)
            finally:
                os.close(descriptor)


def read_meter(path: Path) -> float:
    """Return the seconds that a meter's file holds; 0 where there is none, or none can be read."""
    try:
        with path.open("rb") as file:
            seconds = float(file.read(MOST_BYTES))
    except (OSError, ValueError):
        return 0.0
    return seconds if 0 <= seconds <= _MOST_S else 0.0
