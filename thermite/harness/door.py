"""The door: hears what the supervisor hands over, and answers when it is decided.

One thread hears and decides; a second one brings in what commands import, since a bundle may
take minutes and a stop must not wait for it. Answers are sent when the receipts are written,
and work starts last. Nothing is remembered that a restart could lose: after one, every offer
is void and the next scan of the inbox offers again. Source: ledger and signing, 3.9.
"""

import os
import select
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from thermite.command.keyring import SigningKey
from thermite.errors import LedgerError
from thermite.harness import clock
from thermite.harness.assign_backend import called_servers
from thermite.harness.case import Assigning, Case
from thermite.harness.clerk import Clerk
from thermite.harness.deciding import Bench, Deciding
from thermite.harness.import_kit import Importer
from thermite.harness.import_queue import ImportQueue
from thermite.harness.inbox import Inbox, Which
from thermite.harness.offer import Heard, Offers, PeerGoneError
from thermite.harness.outbox import Outbox
from thermite.schema.offer import (
    PRESENT,
    STARTED,
    Hello,
    Offer,
    Ready,
    Refuse,
    Unlocked,
    Wait,
    name_bytes,
)
from thermite.schema.rig_settings import RigSettings

TICK_S: Final = 1.0
"""How often the door looks up when nobody knocks: for refusals that were held back."""
SWEEP_S: Final = 3600.0
"""How often the inbox is rid of what nobody came for (our figure)."""
MOST_TOGETHER: Final = 64
"""Messages whose decisions are one commit: at most 16 offers are open, the rest are refusals."""
UNAVAILABLE: Final = timedelta(seconds=30)
"""How long a file stays when the ledger takes nothing: until after a restart (our figure)."""


class Door:
    """Decides on commands until it is closed; `fatal` is called once when it can't go on."""

    def __init__(
        self,
        bench: Bench,
        key: SigningKey,
        settings: RigSettings,
        peer: socket.socket,
        fatal: Callable[[BaseException], None],
    ) -> None:
        folder, book = bench.folder, bench.book
        self._bench, self._settings, self._fatal = bench, settings, fatal
        self._inbox = Inbox(folder.inbox)
        self._outbox = Outbox(folder, book.ledger, key)
        group = (folder.inbox / "done").stat().st_gid
        self._clerk = Clerk(book, self._inbox, self._outbox, folder.state, settings, group=group)
        self._offers = Offers(peer, _supervisor_uid())
        self._is_peer_there = True
        self._wake_end, self._wake_me = socket.socketpair()
        for end in (self._wake_end, self._wake_me):
            end.settimeout(0)
        importer = Importer(folder, bench.stages, self._inbox, settings)
        self._imports = ImportQueue(
            importer,
            folder,
            settings.target,
            self._recorded,
            self.wake,
            check_secrets=self._check_secrets,
        )
        bench.unlocking.connect(self._offers.say)
        self._deciding = Deciding(bench, self._clerk, self._imports, self._offers.say)
        self._closing = threading.Event()
        self._sweep_at_ns = 0
        self._on_assigned: Callable[[str], None] = lambda _: None
        self._thread = threading.Thread(target=self._run, name="door", daemon=True)

    def start(self, on_assigned: Callable[[str], None]) -> None:
        """Write what is missing in the outbox, tell the supervisor whom to trust, and open.

        Args:
            on_assigned: called with the id of each assignment that has been created.

        Raises:
            OSError: the inbox or the outbox can't be used.
        """
        self._on_assigned = on_assigned
        self._inbox.recover()
        self._outbox.start()
        self._clerk.publish_trust()
        self._imports.start()
        self._thread.start()

    def ended(self, assignment: str) -> None:  # noqa: ARG002 - the ledger says which
        """Write the receipt of an assignment that has ended. From any thread."""
        self._outbox.catch_up()

    def trust_changed(self) -> None:
        """Tell the supervisor of a trust that came by another way. From any thread."""
        self._clerk.publish_trust()

    def wake(self) -> None:
        """Come back from waiting: something may have happened. From any thread."""
        try:
            self._wake_me.send(b"!")
        except OSError:
            return  # it is awake enough, or closed

    def close(self) -> None:
        """Take no more, end the thread, and close the socket; twice is once."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._imports.stop()
        self.wake()
        if self._thread.is_alive():
            self._thread.join()
        for end in (self._wake_end, self._wake_me, self._offers.sock):
            end.close()

    def _run(self) -> None:
        try:
            self._greet()
            while not self._closing.is_set():
                self._wait_for_something()
                self._hear()
                for result in self._imports.results():
                    case = result.assigning.case
                    self._guarded(case, partial(self._deciding.imported, result))
                self._clerk.tell_suppressed()
                self._clerk.publish_selftest()
                self._outbox.keep_up()
                self._flush()
                self._sweep()
            self._clerk.tell_suppressed(ending=True)
            self._clerk.publish_selftest()
        except Exception as error:  # noqa: BLE001 - a thread's fault must not pass unseen
            self._fatal(error)

    def _sweep(self) -> None:
        if clock.mono_ns() >= self._sweep_at_ns:
            self._inbox.sweep(clock.now().timestamp())
            self._sweep_at_ns = clock.mono_ns() + int(SWEEP_S * 1e9)

    def _greet(self) -> None:
        try:
            self._offers.drain()
        except PeerGoneError:
            self._is_peer_there = False
        self._offers.say(Hello(n=STARTED))

    def _wait_for_something(self) -> None:
        ends = [self._wake_end, *([self._offers.sock] if self._is_peer_there else [])]
        ready, _, _ = select.select(ends, [], [], TICK_S)
        if self._wake_end in ready:
            self._wake_end.recv(4096)

    def _hear(self) -> None:
        """Take all that the supervisor has said by now: its offers share one commit."""
        batch: list[Heard] = []
        try:
            while len(batch) < MOST_TOGETHER and self._is_peer_there:
                heard = self._offers.hear()
                if heard is None:
                    break
                batch.append(heard)
        except PeerGoneError:
            self._is_peer_there = False
            sys.stderr.write("harness: the supervisor's end is closed; the harness goes on\n")
        if batch:
            self._take_together(batch)

    def _take_together(self, batch: Sequence[Heard]) -> None:
        try:
            with self._clerk.together():
                for heard in batch:
                    self._take(heard)
        except LedgerError:
            for heard in batch:
                self._say_unavailable(heard.message.n, clock.now())
            raise

    def _take(self, heard: Heard) -> None:
        message, raw = heard.message, heard.body
        match message:
            case Hello():
                if message.n == STARTED:
                    self._deciding.void()
                    self._offers.say(Hello(n=PRESENT))
            case Offer():
                self._deciding.consider(_case(message, len(raw or b"")), raw or b"")
            case Refuse():
                self._deciding.refused_there(_case(message, message.size), message, raw)
            case Ready():
                self._deciding.fetched(message)
            case Unlocked():
                if heard.letter is not None:
                    self._bench.unlocking.answered(message, heard.letter)

    def _guarded(self, case: Case, act: Callable[[], None]) -> None:
        """Act on a case; when the ledger can't take it, the file stays and the process ends."""
        try:
            act()
        except LedgerError:
            self._say_unavailable(case.n, case.now)
            raise

    def _say_unavailable(self, n: int, now: datetime) -> None:
        until = clock.rfc3339(now + UNAVAILABLE)
        self._offers.say(Wait(n=n, code="ledger_unavailable", until=until))

    def _flush(self) -> None:
        """Write the receipts of what was decided, start its work, and tell the supervisor."""
        answers, assigned = self._deciding.answers, self._deciding.assigned
        if not answers:
            return
        self._outbox.catch_up()
        for assignment in assigned:
            self._on_assigned(assignment)
        for answer in answers:
            self._offers.say(answer)
        assigned.clear()
        answers.clear()

    def _check_secrets(self, one: Assigning) -> None:
        """Refuse a command whose MCP servers need secrets that this rig does not have."""
        servers = called_servers(one.contract, one.body, self._bench.mcp)
        self._bench.unlocking.check(servers)

    def _recorded(self) -> set[tuple[str, str, str]]:
        with self._bench.book.lock:
            return set(self._bench.book.state.imported)


def _case(message: Offer | Refuse, size: int) -> Case:
    which = Which(name_bytes(message.name), message.dev, message.ino)
    return Case(message.n, which, message.sha256, size, clock.now())


def _supervisor_uid() -> int:
    """Return the supervisor's uid as the spawner gave it; one's own where there is only one."""
    return int(os.environ.get("THERMITE_PEER_UID") or os.getuid())
