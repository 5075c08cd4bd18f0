"""A process that was made ahead and ended before the spawner knew of it."""

import os
import socket

from thermite.spawner.ahead import Ahead


def test_one_that_was_buried_as_an_orphan_has_ended() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        one = Ahead(pid, os.pidfd_open(pid), ours)
        os.waitpid(pid, 0)
        assert one.has_ended
        one.close()
