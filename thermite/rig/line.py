"""The line to the spawner: requests and replies by message, descriptors beside them.

One socket, one reader thread; every request waits for the reply with its own id. A
refusal of the spawner is an InfrastructureError. Source: isolation, 4.1 (closed vocabulary);
the other end is `thermite/spawner`.
"""

import contextlib
import errno
import json
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from thermite.errors import InfrastructureError

MAX_MESSAGE_BYTES: Final = 1 << 16
_MAX_DESCRIPTORS: Final = 4
_CROWDED_S: Final = 10.0
_TRY_EVERY_S: Final = 0.01


@dataclass
class _Waiting:
    """One request on its way; something is in answered once there is nothing to wait for."""

    # Not an Event: its lock may be held by the very thread that a signal's handler interrupts.
    answered: queue.SimpleQueue[None] = field(default_factory=queue.SimpleQueue)
    reply: dict[str, Any] = field(default_factory=dict)
    fds: list[int] = field(default_factory=list)


def nothing() -> None:
    """Take no notice of the end of a spawner."""


class Line:
    """The line to a spawner; safe to use from any thread.

    Args:
        gone: called when the other end is closed, before any request fails of it.
    """

    def __init__(self, line: socket.socket, gone: Callable[[], None] = nothing) -> None:
        self._line, self._gone = line, gone
        self._lock = threading.Lock()
        self._waiting: dict[int, _Waiting] = {}
        self._count = 0
        self._is_gone = False
        self._interrupt_waits = self._is_interrupted = False
        threading.Thread(target=self._read, name="spawner", daemon=True).start()

    def ask(
        self, do: str, fields: Mapping[str, object], fds: Sequence[int] = ()
    ) -> tuple[dict[str, Any], list[int]]:
        """Send one request and return its reply with the descriptors beside it.

        Raises:
            InfrastructureError: the spawner refused it, or is gone.
            KeyboardInterrupt: `interrupt` was called, and no answer is there.
        """
        waiting = _Waiting()
        with self._lock:
            if self._is_gone:
                raise InfrastructureError("the spawner is gone")
            self._count += 1
            number = self._count
            self._waiting[number] = waiting
        message = json.dumps({"id": number, "do": do, **fields}, separators=(",", ":")).encode()
        try:
            self._stop_if_interrupted()
            self._send(do, message, fds)
            waiting.answered.get()
            if not waiting.reply:
                self._stop_if_interrupted()
        finally:
            with self._lock:
                self._waiting.pop(number, None)
        if not waiting.reply.get("ok"):
            close_all(waiting.fds)
            raise InfrastructureError(str(waiting.reply.get("error", "the spawner is gone")))
        return waiting.reply, waiting.fds

    def _send(self, do: str, message: bytes, fds: Sequence[int]) -> None:
        if len(message) > MAX_MESSAGE_BYTES:
            raise InfrastructureError(
                f"a request {do!r} of {len(message)} bytes is over {MAX_MESSAGE_BYTES}:"
                " shorten the command or its environment"
            )
        give_up = time.monotonic() + _CROWDED_S
        while True:
            try:
                socket.send_fds(self._line, [message], list(fds))
            except OSError as error:
                # Descriptors on their way count by user, and a stage may have had this one's: what
                # has ended with some on their way, the kernel clears up a moment later.
                if error.errno == errno.ETOOMANYREFS and time.monotonic() < give_up:
                    time.sleep(_TRY_EVERY_S)
                    continue
                raise InfrastructureError(f"the spawner is gone: {error.strerror}") from None
            else:
                return

    def interrupt(self) -> bool:
        """End the wait for every answer, and ask for nothing more; for a signal's handler.

        Takes no lock, which the thread that the signal came to may hold.

        Returns:
            False when the last call is still unheard: nobody has asked for anything since.
        """
        if self._interrupt_waits:
            return False
        self._interrupt_waits = not self._is_interrupted
        self._is_interrupted = True
        for waiting in list(self._waiting.values()):
            waiting.answered.put(None)
        return True

    def hear_interrupt(self) -> None:
        """End here if `interrupt` was called and nothing has ended of it yet.

        Raises:
            KeyboardInterrupt: it was.
        """
        if self._interrupt_waits:
            self._stop_if_interrupted()

    def _stop_if_interrupted(self) -> None:
        if self._is_interrupted:
            self._interrupt_waits = False
            raise KeyboardInterrupt

    def close(self) -> None:
        """Hang up: the spawner of a single client then ends everything and leaves."""
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)

    def _read(self) -> None:
        while True:
            try:
                raw, fds, _, _ = socket.recv_fds(
                    self._line, MAX_MESSAGE_BYTES, _MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
                )
            except OSError:
                raw, fds = b"", []
            if not raw:
                break
            reply = json.loads(raw)
            with self._lock:
                waiting = self._waiting.get(reply["id"])
            if waiting is None:
                close_all(fds)
                continue
            waiting.reply, waiting.fds = reply, fds
            waiting.answered.put(None)
        self._gone()
        with self._lock:
            self._is_gone = True
            for waiting in self._waiting.values():
                waiting.answered.put(None)
        self._line.close()


def close_all(fds: Iterable[int]) -> None:
    """Close descriptors that came beside a reply."""
    for fd in fds:
        os.close(fd)
