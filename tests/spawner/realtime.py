"""Where real-time runs can be had; tried, since a control group may have no share of them."""

import os

import pytest


def _has_realtime() -> bool:
    if os.geteuid() != 0 or len(os.sched_getaffinity(0)) < 2:
        return False
    pid = os.fork()
    if pid == 0:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        except OSError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


needs_realtime = pytest.mark.skipif(
    not _has_realtime(), reason="no real-time runs here: they need root, two CPUs and a share"
)
