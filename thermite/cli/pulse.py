"""A line now and then while a command works on one thing and has nothing to show yet."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from thermite.cli.output import Output

EVERY_S: Final = 20.0
"""How often (known faults, U7: at least every 30 s, or people stop what is silent)."""


@contextlib.contextmanager
def pulse(
    output: Output,
    what: str | Callable[[], str],
    *,
    at_once: bool = True,
    every_s: float = EVERY_S,
) -> Iterator[None]:
    """Say what goes on, and again with the time it has taken so far until it is done.

    Args:
        what: the words; or what returns them, where they change on the way.
        at_once: say it at the beginning, too; False for what mostly takes a moment.
    """
    words = what if callable(what) else lambda: what
    if at_once:
        output.progress(words())
    over, begun = threading.Event(), time.monotonic()

    def say() -> None:
        with contextlib.suppress(OSError):  # nobody reads stderr any more: the work goes on
            while not over.wait(every_s):
                output.progress(f"{words()} ({time.monotonic() - begun:.0f} s so far)")

    speaking = threading.Thread(target=say, name="pulse", daemon=True)
    speaking.start()
    try:
        yield
    finally:
        over.set()
        speaking.join()
