"""A line now and then while a command works on one thing and has nothing to show yet."""

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Final

from thermite.cli.output import Output

EVERY_S: Final = 20.0
"""How often (known faults, U7: at least every 30 s, or people stop what is silent)."""


@contextlib.contextmanager
def pulse(
    output: Output, what: str, *, at_once: bool = True, every_s: float = EVERY_S
) -> Iterator[None]:
    """Say what goes on, and again with the time it has taken so far until it is done.

    Args:
        at_once: say it at the beginning, too; False for what mostly takes a moment.
    """
    if at_once:
        output.progress(what)
    over, begun = threading.Event(), time.monotonic()

    def say() -> None:
        with contextlib.suppress(OSError):  # nobody reads stderr any more: the work goes on
            while not over.wait(every_s):
                output.progress(f"{what} ({time.monotonic() - begun:.0f} s so far)")

    speaking = threading.Thread(target=say, name="pulse", daemon=True)
    speaking.start()
    try:
        yield
    finally:
        over.set()
        speaking.join()
