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
from typing import Final, NamedTuple

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
    Unlock,
    Unlocked,
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


class Prepared(NamedTuple):
    """A file that was read and judged here; body goes beside the message."""

    mark: Mark
    digest: str | None
    message: Offer | Refuse
    body: bytes | None


class Desk:
    """What is open with the harness, what waits, and what is done."""

    def __init__(
        self,
        state: Path,
        peer: Peer,
        start_fetch: Callable[[int, str, Fetch], None],
        start_unlock: Callable[[Unlock], None],
    ) -> None:
        self.inbox = Inbox(state / "inbox")
        self._gate = Gate(state / "trust.json")
        self._peer = peer
        self._start_fetch, self._start_unlock = start_fetch, start_unlock
        self._next_n = secrets.randbelow(1 << 30) * _FIRST_N
        self._open: dict[int, Open] = {}
        self._queue: deque[Mark] = deque()
        self._ready: deque[Prepared] = deque()
        self._ready_by = 0
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
        self._ready = deque(one for one in self._ready if one.mark in present)
        self._queue = self._due(marks)
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
                case Unlock():
                    self._start_unlock(message)
        self._fill()

    def fetched(self, ready: Ready) -> None:
        """Tell the harness how the fetching for one of its offers went."""
        if ready.n in self._open and not self._peer.send(ready):
            del self._open[ready.n]  # it is offered again, and what was fetched lies there

    def unlocked(self, answer: Unlocked, secrets: bytes) -> None:
        """Hand over what MCP servers are sent; an answer that finds no room is asked for again."""
        self._peer.send(answer, secrets)

    def read_ahead(self) -> bool:
        """Read and verify one file more while the harness decides on those that are open.

        Returns:
            Whether there was one: else there is nothing to do but to wait.
        """
        if len(self._ready) >= MAX_OPEN_OFFERS or not self._harness_is_up:
            return False
        one = self._next()
        if one is not None:
            self._ready.append(one)
        return one is not None

    def _due(self, marks: list[Mark]) -> deque[Mark]:
        """Return those of the marks that are neither open, nor ready, nor done, nor too early."""
        taken = {offer.mark for offer in self._open.values()} | self._done
        taken |= {one.mark for one in self._ready}
        now = datetime.now(UTC)
        early = {mark for mark, until in self._later.items() if until > now}
        return deque(mark for mark in marks if mark not in taken and mark not in early)

    def _fill(self) -> None:
        """Offer files of the last scan while there is room, a harness and a trust."""
        self._judge_again_by_a_new_trust()
        while self._harness_is_up and len(self._open) < MAX_OPEN_OFFERS:
            one = self._ready.popleft() if self._ready else self._next()
            if one is None:
                return
            if not self._peer.send(one.message, one.body):
                self._ready.appendleft(one)  # the socket has no room for it now
                return
            self._open[one.message.n] = Open(one.mark, one.digest, time.monotonic())

    def _judge_again_by_a_new_trust(self) -> None:
        """Put back what was read ahead when the trust has changed since."""
        self._gate.refresh()
        if self._gate.readings != self._ready_by:
            self._queue.extendleft(one.mark for one in reversed(self._ready))
            self._ready.clear()
        self._ready_by = self._gate.readings

    def _next(self) -> Prepared | None:
        """Return the next file of the queue that there is something to say of, or None."""
        while self._queue:
            if not self._gate.refresh():
                self._say_once(f"nothing is offered without a trust: {self._gate.problem}")
                return None
            one = self._prepare(self._queue.popleft())
            if one is not None:
                return one
        return None

    def _prepare(self, mark: Mark) -> Prepared | None:
        """Read one file and say what to tell of it; None: nothing yet, a later scan asks again."""
        try:
            raw = self.inbox.read(mark)
        except FileProblemError as problem:
            if problem.may_pass and not self._settling.has_settled(mark, time.monotonic()):
                return None
            return self._refusal(mark, None, problem.code, str(problem))
        found = self._gate.admit(raw, datetime.now(UTC))
        if isinstance(found, Admitted):
            return self._offer(mark, raw, found)
        if found.code == "malformed_envelope" and not self._settling.has_settled(
            mark, time.monotonic()
        ):
            return None
        return self._refusal(mark, raw, found.code, found.message, body=found.signed)

    def _offer(self, mark: Mark, raw: bytes, found: Admitted) -> Prepared | None:
        if found.opens > datetime.now(UTC):
            self._later[mark] = found.opens
            return None
        message = Offer(
            n=self._take_number(),
            name=name_text(mark.name),
            dev=mark.dev,
            ino=mark.ino,
            sha256=_sha256(raw),
        )
        return Prepared(mark, found.digest, message, raw)

    def _refusal(
        self, mark: Mark, raw: bytes | None, code: str, message: str, *, body: bool = False
    ) -> Prepared:
        refusal = Refuse(
            n=self._take_number(),
            name=name_text(mark.name),
            dev=mark.dev,
            ino=mark.ino,
            sha256=None if raw is None else _sha256(raw),
            size=mark.size if raw is None else len(raw),
            code=code,
            message=short(message),
        )
        return Prepared(mark, None, refusal, raw if body else None)

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
        self._ready.clear()
        self._queue = self._due(self.inbox.scan())

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
