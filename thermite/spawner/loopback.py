"""The loopback of a stage's own network, and the one door in it: the campaign's gateway.

A stage with a network of its own reaches nothing outside. Its process makes a listening socket
there before it gives up what it has, and sends it away: whoever accepts from it answers the
stage, from wherever he is. Source: isolation, 4.1, Network; netdevice(7).
"""

import contextlib
import fcntl
import socket
import struct
from typing import Final

_ADDRESS: Final = "127.0.0.1"
_NAME: Final = b"lo"
_READ_FLAGS: Final = 0x8913  # SIOCGIFFLAGS, include/uapi/linux/sockios.h
_SET_FLAGS: Final = 0x8914  # SIOCSIFFLAGS
_UP: Final = 1  # IFF_UP, include/uapi/linux/if.h
_REQUEST: Final = struct.Struct("=16sH22x")  # struct ifreq: a name, flags, room
_BACKLOG: Final = 64


def offer(port: int, fd: int) -> None:
    """Listen on a port of the stage's own loopback, and send the listener over `fd`.

    Nothing is sent where the loopback can't be had, as in a container without CAP_NET_ADMIN:
    the stage then runs without its gateway.
    """
    with (
        contextlib.suppress(PermissionError),
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener,
        socket.socket(fileno=fd) as away,
    ):
        _raise_loopback(listener)
        listener.bind((_ADDRESS, port))
        listener.listen(_BACKLOG)
        socket.send_fds(away, [b"L"], [listener.fileno()])


def _raise_loopback(any_socket: socket.socket) -> None:
    asked = _REQUEST.pack(_NAME, 0)
    _, flags = _REQUEST.unpack(fcntl.ioctl(any_socket, _READ_FLAGS, asked))
    fcntl.ioctl(any_socket, _SET_FLAGS, _REQUEST.pack(_NAME, flags | _UP))
