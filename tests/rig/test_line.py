"""The line to a spawner, when its other end goes away."""

import json
import os
import resource
import socket
import threading

import pytest

from thermite.errors import InfrastructureError
from thermite.rig.line import Line


def test_the_end_of_a_spawner_is_told_before_any_request_fails_of_it() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    order = []

    def hang_up() -> None:
        theirs.recv(1 << 16)
        theirs.close()

    line = Line(ours, lambda: order.append("told"))
    threading.Thread(target=hang_up).start()
    with pytest.raises(InfrastructureError, match="the spawner is gone"):
        line.ask("probe", {})
    order.append("failed")
    assert order == ["told", "failed"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may have as many on their way as it likes")
def test_a_request_waits_until_its_user_may_send_descriptors_again() -> None:
    """Another program of the same user, or a stage that has just ended, may have too many."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    full, empty = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    line, given = Line(ours), 64

    def answer() -> None:
        raw, fds, _, _ = socket.recv_fds(theirs, 1 << 16, 1)
        theirs.send(json.dumps({"id": json.loads(raw)["id"], "ok": bool(fds)}).encode())

    asked = threading.Thread(target=answer, daemon=True)
    asked.start()
    socket.send_fds(full, [b"x"], [0] * given)
    resource.setrlimit(resource.RLIMIT_NOFILE, (given - 1, before[1]))
    try:
        late = threading.Timer(0.2, empty.close)
        late.start()
        assert line.ask("collect", {}, (0,)) == ({"id": 1, "ok": True}, [])
        late.join()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
        asked.join()
        for one in (ours, theirs, full, empty):
            one.close()
