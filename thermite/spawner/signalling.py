"""Signals to processes that were seen, and never to who has got their numbers since.

By pidfd: it is opened first, and what is then still seen under that number is what it stands for.
"""

import contextlib
import os
import signal
from collections.abc import Sequence
from typing import Final

from . import scan

_MOST_HELD: Final = 256
"""Processes that are signalled in turn: each costs a descriptor, of which 1,024 are usual."""


def send(one: scan.Seen, number: int) -> None:
    """Signal one process, unless it is gone."""
    send_all((one,), number)


def send_all(found: Sequence[scan.Seen], number: int, times: int = 1) -> None:
    """Signal processes in turn, so many times each."""
    for first in range(0, len(found), _MOST_HELD):
        _send_in_turn(found[first : first + _MOST_HELD], number, times)


def _send_in_turn(found: Sequence[scan.Seen], number: int, times: int) -> None:
    with contextlib.ExitStack() as opened:
        fds = []
        for one in found:
            with contextlib.suppress(ProcessLookupError):
                fd = os.pidfd_open(one.pid)
                opened.callback(os.close, fd)
                now = scan.seen(one.pid)
                if now is not None and now.started == one.started:
                    fds.append(fd)
        for _ in range(times):
            for fd in fds:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(fd, number)


def kill_each(uid: int, but: int | None = None) -> None:
    """Kill every process of a uid that a scan sees, but for one.

    For when there is no killer to be had: what is born meanwhile is not seen.
    """
    for pid in scan.living(uid, but):
        with contextlib.suppress(ProcessLookupError):
            fd = os.pidfd_open(pid)
            try:
                seen = scan.uids_of(pid)
                if seen is not None and {*seen[1]} == {uid}:
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
            finally:
                os.close(fd)
