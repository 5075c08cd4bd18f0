"""One peer's socket: requests in, one reply to each out."""

import errno
import os
import socket
import time
from collections.abc import Callable, Generator, Mapping
from typing import Final

from .fork import said_of
from .ground import Ground
from .loop import Step, Until
from .stage import Reply
from .vocabulary import (
    MAX_DESCRIPTORS,
    MAX_MESSAGE_BYTES,
    Fields,
    RefusedError,
    Request,
    Shape,
    read_request,
    write,
)

_MOST_REQUESTS: Final = 256
_CROWDED_S: Final = 10.0
_TRY_EVERY_S: Final = 0.01

Answer = Callable[[Fields, list[int]], Generator[Until, frozenset[int], Reply] | Reply]


class Listener:
    """Takes requests until the peer hangs up; each is answered by a task of its own."""

    def __init__(
        self, ground: Ground, fd: int, words: Mapping[str, Shape], answers: Mapping[str, Answer]
    ) -> None:
        self._ground, self._words, self._answers = ground, words, answers
        self._socket = socket.socket(fileno=fd)
        self._socket.settimeout(0)
        self._open_requests = 0
        self._is_gone = False

    def listen(self) -> Step[None]:
        """Take requests until the peer closes its end."""
        while not self._is_gone:
            yield Until((self._socket.fileno(),))
            try:
                raw, fds, flags, _ = socket.recv_fds(
                    self._socket,
                    MAX_MESSAGE_BYTES + 1,
                    MAX_DESCRIPTORS,
                    socket.MSG_CMSG_CLOEXEC,
                )
            except BlockingIOError:
                continue
            except OSError:
                break
            if not raw:
                break
            if flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC):
                raw = bytes(MAX_MESSAGE_BYTES + 1)  # too long: refused like any such message
            self._ground.loop.start(self._answer(raw, fds))
        self._is_gone = True
        self._socket.close()

    def hang_up(self) -> None:
        """Close this end: the peer's next word finds nobody."""
        self._socket.shutdown(socket.SHUT_RDWR)

    def _answer(self, raw: bytes, fds: list[int]) -> Step[None]:
        self._open_requests += 1
        given: list[int] = []
        number = 0
        try:
            request = self._admitted(raw)
            number = request.id
            answer = self._answers[request.do](request.fields, fds)
            reply, given = answer if isinstance(answer, tuple) else (yield from answer)
            message = write({"id": number, "ok": True, **reply})
        except RefusedError as refusal:
            number = number or refusal.request
            message = write({"id": number, "ok": False, "error": str(refusal)})
        except OSError as error:
            message = write({"id": number, "ok": False, "error": f"the spawner: {said_of(error)}"})
        finally:
            self._open_requests -= 1
            for fd in fds:
                os.close(fd)
        yield from self._send(number, message, given)

    def _admitted(self, raw: bytes) -> Request:
        request = read_request(raw, self._words)
        if self._open_requests > _MOST_REQUESTS:
            refusal = RefusedError(f"more than {_MOST_REQUESTS} requests are open")
            refusal.request = request.id
            raise refusal
        return request

    def _send(self, number: int, message: bytes, fds: list[int]) -> Step[None]:
        """Send one reply; a peer that does not read makes only its own replies wait.

        Descriptors on their way are counted by user, and a stage may be this very one: what it
        had on its way when it ended, the kernel takes back a moment later.
        """
        given, give_up = fds, time.monotonic() + _CROWDED_S
        try:
            while not self._is_gone:
                try:
                    socket.send_fds(self._socket, [message], given)
                except BlockingIOError:
                    yield Until((), None, (self._socket.fileno(),))
                except OSError as error:
                    if error.errno != errno.ETOOMANYREFS:
                        return
                    if time.monotonic() > give_up:
                        words = f"the spawner: {error.strerror}"
                        message = write({"id": number, "ok": False, "error": words})
                        given = []
                    yield Until((), time.monotonic() + _TRY_EVERY_S)
                else:
                    return
        finally:
            for fd in fds:
                os.close(fd)
