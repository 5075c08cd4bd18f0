"""The harness's end of the socket to the supervisor.

What arrives is somebody else's word: the sender is whom the kernel names, a body counts only
when its memory file is sealed and has the digest that the message gives. Sending never waits:
a lost answer costs one more scan, since the folder is the truth and not this socket.
Source: ledger and signing, 1.4 and 3.9.
"""

import array
import fcntl
import hashlib
import os
import socket
import struct
import sys
from typing import Final, NamedTuple

from thermite.schema.command import MAX_COMMAND_BYTES
from thermite.schema.offer import (
    MAX_MESSAGE_BYTES,
    NotAMessageError,
    Offer,
    Refuse,
    ToHarness,
    ToSupervisor,
    Unlocked,
    encode,
    to_harness,
)

SEALS: Final = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
"""All four: neither size nor bytes change any more (ledger and signing, 1.4)."""
_CREDENTIALS: Final = struct.Struct("3i")  # struct ucred of unix(7): pid, uid, gid
_INT: Final = struct.calcsize("i")
_ROOM: Final = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(_INT)


class PeerGoneError(Exception):
    """The supervisor's end is closed; the harness goes on without."""


class Heard(NamedTuple):
    """A message that counts, and the bytes that came beside an offer or a refusal.

    letter: the descriptor of a memory file that is another process's to read; whoever takes
    the message closes it.
    """

    message: ToHarness
    body: bytes | None
    letter: int | None = None


class Offers:
    """Hears offers and answers them, without ever waiting for the supervisor."""

    def __init__(self, sock: socket.socket, uid: int) -> None:
        """Take the socket; uid: the user whose messages count."""
        self.sock = sock
        self._uid = uid
        sock.settimeout(0)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)

    def drain(self) -> None:
        """Throw away what was said to the process before this one.

        Raises:
            PeerGoneError: the supervisor's end is closed.
        """
        while (heard := self.hear()) is not None:
            if heard.letter is not None:
                os.close(heard.letter)

    def hear(self) -> Heard | None:
        """Return the next message that counts, or None when there is none now.

        Raises:
            PeerGoneError: the supervisor's end is closed.
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
            uid, descriptors = _unpack(beside)
            try:
                if not raw:
                    raise PeerGoneError
                return self._read(raw, uid, descriptors, flags)
            except NotAMessageError as error:
                sys.stderr.write(f"harness: a message of the supervisor is ignored: {error}\n")
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)

    def say(self, message: ToSupervisor) -> None:
        """Send an answer; one that nobody takes is lost, and the next scan asks again."""
        try:
            self.sock.send(encode(message))
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            return

    def _read(self, raw: bytes, uid: int | None, descriptors: list[int], flags: int) -> Heard:
        if uid != self._uid:
            raise NotAMessageError(f"it comes from uid {uid}, and the supervisor is {self._uid}")
        if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC) or len(descriptors) > 1:
            raise NotAMessageError("it is cut short, or more than one file came with it")
        message = to_harness(raw)
        if isinstance(message, Unlocked):
            return Heard(message, None, _letter(descriptors))
        body = _body(descriptors[0]) if descriptors else None
        if isinstance(message, Offer) and body is None:
            raise NotAMessageError("an offer came without its bytes")
        if isinstance(message, Offer | Refuse):
            _check_digest(message.sha256, body)
        return Heard(message, body)


def _unpack(beside: list[tuple[int, int, bytes]]) -> tuple[int | None, list[int]]:
    """Return the sender's uid and the descriptors that came along."""
    uid: int | None = None
    descriptors = array.array("i")
    for level, kind, data in beside:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
            uid = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])[1]
        elif (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) - len(data) % _INT])
    return uid, list(descriptors)


def _body(descriptor: int) -> bytes:
    """Return the bytes of a sealed memory file.

    Raises:
        NotAMessageError: it is something else, could still change, or is too large.
    """
    _check_seals(descriptor)
    size = os.fstat(descriptor).st_size
    if size > MAX_COMMAND_BYTES:
        raise NotAMessageError(f"the memory file beside it has {size} bytes")
    return os.pread(descriptor, size, 0)


def _letter(descriptors: list[int]) -> int:
    """Return a descriptor of our own of a sealed memory file whose bytes are not ours to read."""
    if not descriptors:
        raise NotAMessageError("its memory file is missing")
    _check_seals(descriptors[0])
    return fcntl.fcntl(descriptors[0], fcntl.F_DUPFD_CLOEXEC, 3)


def _check_seals(descriptor: int) -> None:
    try:
        seals = fcntl.fcntl(descriptor, fcntl.F_GET_SEALS)
    except OSError:
        raise NotAMessageError("the file beside it is no memory file") from None
    if seals != SEALS:
        raise NotAMessageError("the memory file beside it is not sealed")


def _check_digest(sha256: str | None, body: bytes | None) -> None:
    if body is not None and hashlib.sha256(body).hexdigest() != sha256:
        raise NotAMessageError("the bytes beside it have another SHA-256 than it says")
