"""Files of the inbox -> offers to the harness, and what it answers.

The desk keeps no truth: which files lie in `inbox/new` is the truth, and what is remembered
here only saves work. So a void offer, a lost answer or a restart of either end costs one
more scan, never a command. Source: ledger and signing, 3.9.
"""

import hashlib
import secrets
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from supervisor.admit import Admitted, Gate
from supervisor.fetch import Fetcher
from supervisor.inbox import FileProblemError, Inbox, Mark, Place, Settling
from supervisor.peer import Peer
from thermite.command.instant import read_instant
from thermite.schema.offer import (
    MAX_OPEN_OFFERS,
    PRESENT,
    STARTED,
    Decided,
    Fetch,
    Hello,
    Offer,
    Ready,
    Refuse,
    Wait,
    name_text,
    short,
)

_FIRST_N: Final = 1 << 20  # numbers of one process; the random part keeps processes apart


OPEN_S: Final = 3600.0
"""An offer is given up after that, s: its answer was lost, since no import takes as long."""


@dataclass
class Open:
    """An offer that the harness has not answered yet; digest: None for a refusal."""

    mark: Mark
    digest: str | None
    since_s: float


class Desk:
    """What is open with the harness, what waits, and what is done."""

    def __init__(
        self, state: Path, peer: Peer, start_fetch: Callable[[int, str, Fetch], None]
    ) -> None:
        self.inbox = Inbox(state / "inbox")
        self._gate = Gate(state / "trust.json")
        self._peer = peer
        self._start_fetch = start_fetch
        self._next_n = secrets.randbelow(1 << 30) * _FIRST_N
        self._open: dict[int, Open] = {}
        self._queue: deque[Mark] = deque()
        self._later: dict[Mark, datetime] = {}
        self._done: set[Mark] = set()
        self._settling = Settling()
        self._harness_is_up = False
        self._said: str | None = None

    def greet(self) -> None:
        """Tell the harness that this process is new: what was open before is void.

        Whatever lies in the socket was meant for the process before this one.
        """
        while self._peer.receive() is not None:
            pass
        self._peer.send(Hello(n=STARTED))

    def scan(self) -> Place | None:
        """Look at the folder, offer what can be offered, and return where the folder is."""
        marks = self.inbox.scan()
        present = set(marks)
        self._done &= present
        self._settling.keep(present)
        oldest = time.monotonic() - OPEN_S
        self._open = {n: one for n, one in self._open.items() if one.since_s > oldest}
        self._later = {mark: at for mark, at in self._later.items() if mark in present}
        self._queue = deque(mark for mark in marks if self._is_due(mark))
        self._fill()
        return self.inbox.place()

    @property
    def settling(self) -> bool:
        """Whether a file is being watched until it settles: then a scan comes sooner."""
        return self._settling.waiting

    def hear(self) -> None:
        """Take in every message of the harness, and offer what there is room for now."""
        while (message := self._peer.receive()) is not None:
            match message:
                case Hello():
                    self._void(message)
                case Decided():
                    self._decided(message)
                case Wait():
                    self._wait(message)
                case Fetch():
                    self._fetch(message)
        self._fill()

    def fetched(self, ready: Ready) -> None:
        """Tell the harness how the fetching for one of its offers went."""
        if ready.n in self._open and not self._peer.send(ready):
            del self._open[ready.n]  # it is offered again, and what was fetched lies there

    def _is_due(self, mark: Mark) -> bool:
        if mark in self._done or any(offer.mark == mark for offer in self._open.values()):
            return False
        until = self._later.get(mark)
        return until is None or until <= datetime.now(UTC)

    def _fill(self) -> None:
        """Offer files of the last scan while there is room, a harness and a trust."""
        while self._queue and self._harness_is_up and len(self._open) < MAX_OPEN_OFFERS:
            if not self._gate.refresh():
                self._say_once(f"nothing is offered without a trust: {self._gate.problem}")
                return
            if not self._present(self._queue[0]):
                return
            self._queue.popleft()

    def _present(self, mark: Mark) -> bool:
        """Read one file and offer or refuse it; False: the socket has no room for it now."""
        try:
            raw = self.inbox.read(mark)
        except FileProblemError as problem:
            if problem.may_pass and not self._settling.has_settled(mark, time.monotonic()):
                return True
            return self._refuse(mark, None, problem.code, str(problem))
        found = self._gate.admit(raw, datetime.now(UTC))
        if isinstance(found, Admitted):
            return self._offer(mark, raw, found)
        if found.code == "malformed_envelope" and not self._settling.has_settled(
            mark, time.monotonic()
        ):
            return True
        return self._refuse(mark, raw, found.code, found.message, body=found.signed)

    def _offer(self, mark: Mark, raw: bytes, found: Admitted) -> bool:
        if found.opens > datetime.now(UTC):
            self._later[mark] = found.opens
            return True
        n = self._take_number()
        message = Offer(
            n=n, name=name_text(mark.name), dev=mark.dev, ino=mark.ino, sha256=_sha256(raw)
        )
        return self._sent(n, mark, found.digest, sent=self._peer.send(message, raw))

    def _refuse(
        self, mark: Mark, raw: bytes | None, code: str, message: str, *, body: bool = False
    ) -> bool:
        n = self._take_number()
        refusal = Refuse(
            n=n,
            name=name_text(mark.name),
            dev=mark.dev,
            ino=mark.ino,
            sha256=None if raw is None else _sha256(raw),
            size=mark.size if raw is None else len(raw),
            code=code,
            message=short(message),
        )
        return self._sent(n, mark, None, sent=self._peer.send(refusal, raw if body else None))

    def _sent(self, n: int, mark: Mark, digest: str | None, *, sent: bool) -> bool:
        if sent:
            self._open[n] = Open(mark, digest, time.monotonic())
        return sent

    def _take_number(self) -> int:
        self._next_n += 1
        return self._next_n

    def _void(self, message: Hello) -> None:
        """Forget what was open with a harness that is gone."""
        if message.n == STARTED:
            self._peer.send(Hello(n=PRESENT))
        self._harness_is_up = True
        self._open.clear()
        self._later.clear()
        self._done.clear()
        self._queue = deque(mark for mark in self.inbox.scan() if self._is_due(mark))

    def _decided(self, message: Decided) -> None:
        offer = self._open.pop(message.n, None)
        if offer is not None:
            self._done.add(offer.mark)  # lies there still only when it could not be moved

    def _wait(self, message: Wait) -> None:
        offer = self._open.pop(message.n, None)
        if offer is None:
            return
        try:
            self._later[offer.mark] = read_instant(message.until)
        except ValueError as error:
            self._say_once(f"the harness names no time to wait until: {error}")

    def _fetch(self, message: Fetch) -> None:
        offer = self._open.get(message.n)
        if offer is not None and offer.digest is not None:
            self._start_fetch(message.n, offer.digest, message)

    def _say_once(self, text: str) -> None:
        if text != self._said:
            sys.stderr.write(f"supervisor: {text}\n")
        self._said = text


def fetch_all(fetcher: Fetcher, n: int, digest: str, wanted: Fetch) -> Ready:
    """Fetch what the harness asked for and return what it is told."""
    files, failed = fetcher.fetch(wanted.sources)
    return Ready(n=n, digest=digest, files=files, failed=failed)


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
