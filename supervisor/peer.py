"""The supervisor's end of the socket to the harness.

One SOCK_SEQPACKET pair that the spawner made: a message is one datagram, large bodies go
beside it as a sealed memory file. Who sent a message is what the kernel says of it, never
what stands in it. Source: ledger and signing, 1.4 and 3.9.
"""

import array
import fcntl
import os
import socket
import struct
import sys
from typing import Final

from thermite.schema.offer import (
    MAX_MESSAGE_BYTES,
    NotAMessageError,
    ToHarness,
    ToSupervisor,
    encode,
    to_supervisor,
)

SEALS: Final = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
"""All four: neither size nor bytes change any more (ledger and signing, 1.4)."""
_CREDENTIALS: Final = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid
_ROOM: Final = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(struct.calcsize("i"))


class PeerGoneError(Exception):
    """The harness's end is closed: nobody will ever answer on this socket."""


class Peer:
    """Speaks to the harness without ever waiting for it."""

    def __init__(self, sock: socket.socket, uid: int) -> None:
        """Take the socket; uid: the user whose messages count."""
        self.sock = sock
        self._uid = uid
        sock.settimeout(0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)

    def send(self, message: ToHarness, body: bytes | None = None) -> bool:
        """Send a message, and body as a sealed memory file; False: there is no room now.

        Raises:
            PeerGoneError: the harness's end is closed.
        """
        descriptor = None if body is None else sealed(body)
        try:
            beside = [] if descriptor is None else [descriptor]
            rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", beside))
            self.sock.sendmsg([encode(message)], [rights] if beside else [])
        except BlockingIOError:
            return False
        except (BrokenPipeError, ConnectionResetError) as error:
            raise PeerGoneError from error
        finally:
            if descriptor is not None:
                os.close(descriptor)
        return True

    def receive(self) -> ToSupervisor | None:
        """Return the next message that counts, or None when there is none now.

        Raises:
            PeerGoneError: the harness's end is closed.
        """
        while True:
            try:
                raw, beside, flags, _ = self.sock.recvmsg(
                    MAX_MESSAGE_BYTES, _ROOM, socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                return None
            except ConnectionResetError as error:
                raise PeerGoneError from error
            uid = _sender(beside)
            if not raw:
                raise PeerGoneError
            message = self._read(raw, uid, cut=bool(flags & socket.MSG_TRUNC))
            if message is not None:
                return message

    def _read(self, raw: bytes, uid: int | None, *, cut: bool) -> ToSupervisor | None:
        if uid != self._uid:
            sys.stderr.write(f"supervisor: a message of uid {uid} is ignored: not the harness\n")
            return None
        if cut:
            sys.stderr.write("supervisor: a message of the harness is ignored: it is cut short\n")
            return None
        try:
            return to_supervisor(raw)
        except NotAMessageError as error:
            sys.stderr.write(f"supervisor: a message of the harness is ignored: {error}\n")
            return None


def sealed(body: bytes) -> int:
    """Return the descriptor of a memory file that holds the bytes and can't change any more."""
    descriptor = os.memfd_create("offer", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        done = 0
        while done < len(body):  # in place: the receiver gets the descriptor's offset, too
            done += os.pwrite(descriptor, body[done:], done)
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, SEALS)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _sender(beside: list[tuple[int, int, bytes]]) -> int | None:
    """Return the sender's uid, and close whatever descriptors came along: none is wanted."""
    uid = None
    for level, kind, data in beside:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
            uid = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])[1]
        elif (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            got = array.array("i")
            got.frombytes(data[: len(data) - len(data) % got.itemsize])
            for descriptor in got:
                os.close(descriptor)
    return uid
