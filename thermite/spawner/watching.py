"""The spawner's end of an attendant's line."""

import json
import os
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Final

from . import linux
from .attendant import DONE, END, OVER, UNSEEN, WIDENED, Watch, attend_for_ever
from .fork import Fork, Garb, end, fork, trouble
from .loop import Step, Until
from .seccomp import watching

_DRAIN_S: Final = 15.0
"""How long the output may take to close (Kit manifest, Limits)."""
UNMAPPED: Final = "unmapped_memory"
"""The gap of a level, or of one stage, where memory that nobody maps can't be counted."""


def looking(garb: Garb, capability: int) -> Garb:
    """Return what an attendant wears: with leave to look at processes, and none to touch them.

    capability: what it takes to look at another user's, 0 where they are its own.
    """
    if not capability:
        return garb
    return replace(garb, keep=garb.keep | capability, program=watching(linux.MACHINE))


class Attendant:
    """One slot's attendant, kept from stage to stage."""

    def __init__(self, garb: Garb) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line = ours
        self._line.settimeout(0)
        self.fork: Fork = fork(attend_for_ever, [theirs.fileno()], garb)
        theirs.close()
        self.over: str | None = None
        self.is_widened = False
        self.is_unseen = False
        self.is_gone = False

    @property
    def fd(self) -> int:
        """Readable when it has something to say."""
        return self._line.fileno()

    def begin(self, watch: Watch, fds: Sequence[int]) -> None:
        """Give it a stage to watch."""
        self.over, self.is_widened, self.is_unseen = None, False, False
        socket.send_fds(self._line, [json.dumps(asdict(watch)).encode()], list(fds))

    def hear(self) -> bool:
        """Take in one word; true when that was the last of this stage."""
        try:
            word = self._line.recv(64)
        except BlockingIOError:
            return False
        if not word:
            self.is_gone = True
            return True
        if word in OVER and self.over is None:
            self.over = OVER[word]
        self.is_widened |= word == WIDENED
        self.is_unseen |= word == UNSEEN
        return word == DONE

    def wind_up(self) -> None:
        """Let it write the tails."""
        if not self.is_gone:
            try:
                self._line.send(END)
            except ConnectionError:  # ended meanwhile: `finish` says so
                self.is_gone = True

    def discard(self) -> None:
        """Bury one that was found gone."""
        signal.pidfd_send_signal(self.fork.pidfd, signal.SIGKILL)
        self._line.close()
        end(self.fork)

    def finish(self) -> Step[str | None]:
        """Wait until it has wound up; return what went wrong, None when nothing did."""
        deadline = time.monotonic() + _DRAIN_S
        while not self.is_gone and time.monotonic() < deadline:
            if self.fd in (yield Until((self.fd,), deadline)) and self.hear():
                break
        else:
            return (yield from self._bury())
        return (yield from self._bury()) if self.is_gone else None

    def _bury(self) -> Step[str]:
        self.is_gone = True
        signal.pidfd_send_signal(self.fork.pidfd, signal.SIGKILL)
        yield Until((self.fork.pidfd,))
        self._line.close()
        self.fork.said = os.read(self.fork.said_fd, 4096)
        end(self.fork)
        return trouble(self.fork) or "it did not answer"
