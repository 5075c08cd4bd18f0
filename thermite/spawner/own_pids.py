"""Process ids of a stage's own: nobody else can be named, and one end is everybody's.

    spawner ── helper     makes the namespaces, starts the next two, and leaves
            ├─ init       process 1 in there; buries orphans, and its end is everybody's
            └─ stage      process 2, which the spawner stamps and reaps

Both are the spawner's own children from the first: a helper may be long in leaving, and until
then only that one could bury a child of its own. So the stage's signals mean what they mean
elsewhere, its clock and its rusage are the spawner's to read, and once init's end has been waited
for, the kernel has ended all in there. Init leaves with the spawner.
Source: isolation, finding 4; pid_namespaces(7).
"""

import contextlib
import os
import select
import signal
import socket
from typing import Final, NoReturn

from . import linux, namespaces
from .ahead import BESIDE, STARTED

PROC: Final = "/proc"


def enter(line: socket.socket, spawner: int, network: int | None = None) -> None:
    """Return as process 2 of the new namespace; the caller's process tells of it and leaves.

    Args:
        line: the spawner's, on which the numbers of init and stage are said.
        spawner: its pidfd, which is closed here.
        network: a descriptor of the stage's network that goes with the numbers.

    Raises:
        OSError: the kernel refused.
    """
    init = namespaces.fork_beside()
    if init == 0:
        _stay(spawner)
    os.close(spawner)
    told, helper = os.pipe2(os.O_CLOEXEC)
    stage = namespaces.fork_beside()
    if stage:
        _tell(line, STARTED.pack(BESIDE, init, stage), network)
        os.close(helper)  # its exit, with all that it then gives back, nobody waits for
        os._exit(0)
    os.close(helper)
    os.read(told, 1)  # until the helper has told: nothing is said before that
    os.close(told)
    namespaces.mount(
        "proc", PROC, "proc", namespaces.MS_NOSUID | namespaces.MS_NODEV | namespaces.MS_NOEXEC
    )


def _tell(line: socket.socket, numbers: bytes, network: int | None) -> None:
    """Say the numbers, with the network unless as many descriptors are on their way as may be.

    Others of this user may have them there; the network then goes with the stage.
    """
    if network is not None:
        with contextlib.suppress(OSError):
            socket.send_fds(line, [numbers], [network])
            return
    line.send(numbers)


def _stay(spawner: int) -> NoReturn:
    """Be process 1 until the spawner is gone: who ends here is buried by the kernel."""
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        kept = os.dup2(spawner, 0)
        linux.close_from(kept + 1)
        linux.keep_capabilities(0)
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        select.select([kept], [], [])
    finally:
        os._exit(0)
