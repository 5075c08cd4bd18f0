"""The line to a spawner, when its other end goes away."""

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
