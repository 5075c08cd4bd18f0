"""The killer's own process: kill(-1) with the ids (R, slot, R), and never with others.

Source: isolation, section 5. It waits as root and becomes what it must be only when its
order comes; what stands between the change of ids and the kill is the attacker's window.
"""

import contextlib
import os
import socket
from typing import Final

from . import linux

NOT_AS_ASSERTED: Final = 3
DONE: Final = b"done"


def wait_to_kill(reaper: int, line: socket.socket, _parent: int) -> None:
    """Wait for `<uid> <signal> <times>`, send that signal to all of that uid, and leave."""
    look, nobody_there = linux.CapabilityLook(), contextlib.suppress(ProcessLookupError)
    look.is_empty()  # once ahead, so that no page is copied in the window
    words = line.recv(64).split()
    if len(words) != 3:  # noqa: PLR2004 - the spawner is gone
        os._exit(0)
    uid, number, times = map(int, words)
    rounds = range(times)  # made ahead of the window, too
    code = NOT_AS_ASSERTED
    try:
        if 0 in {reaper, uid} or reaper == uid:
            return
        os.setgroups([])
        os.setresgid(reaper, reaper, reaper)
        os.setresuid(reaper, uid, reaper)
        if os.getresuid() == (reaper, uid, reaper) and look.is_empty():
            with nobody_there:
                for _ in rounds:
                    os.kill(-1, number)
            code = 0
            line.send(DONE)  # before the exit, which takes longer than all of this
    finally:
        os._exit(code)
