"""A rig with a real ledger, door and stages; the test is the supervisor, or starts it."""

import hashlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from supervisor.peer import Peer
from tests.orders import Orders, trusted
from thermite.command.receipt import open_receipt
from thermite.command.signing_key import SigningKey
from thermite.errors import InfrastructureError
from thermite.harness import clock
from thermite.harness.book import Book, Draft
from thermite.harness.door import Door
from thermite.harness.folder import RigFolder
from thermite.harness.outbox import witnessed
from thermite.harness.unlocking import Unlocking
from thermite.ledger.append import Ledger
from thermite.ledger.replay import recorded
from thermite.rig.stages import Stages
from thermite.schema.command import Receipt
from thermite.schema.event import ENVELOPES, Event, IsolationProbe, LedgerOpened, TrustSet
from thermite.schema.offer import (
    Decided,
    Fetch,
    Hello,
    Offer,
    ToHarness,
    ToSupervisor,
    Wait,
    name_text,
)
from thermite.schema.rig_settings import McpProgram, RigSettings

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 120.0
COIN = bytes(range(32))


@dataclass
class Bench:
    """What a door needs, for a rig of a test."""

    book: Book
    folder: RigFolder
    stages: Stages
    coin_key: bytes = COIN
    mcp: Mapping[str, McpProgram] = field(default_factory=dict)
    unlocking: Unlocking = field(default_factory=Unlocking)


@dataclass
class Live:
    """One rig; `open` starts its door, `restart` does what a kill and a new start do."""

    state: Path
    stages: Stages
    settings: RigSettings = field(default_factory=RigSettings)
    rig_key: SigningKey = field(default_factory=SigningKey.generate)
    assigned: list[str] = field(default_factory=list)
    faults: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.state.mkdir(parents=True, exist_ok=True)
        self.orders = Orders(self.state, rig_key=self.rig_key)
        self.orders.make_folders()
        self.folder = RigFolder(self.state)
        self.folder.make()
        self.uid = os.getuid()
        ledger = Ledger.create(
            self.folder.ledger, self._opening(), self.orders.rig_key, now=clock.stamp
        )
        self._hold(ledger)
        self.book.append(
            Draft(TrustSet(version=1, keys=[trusted(self.orders.key)], by="local")),
            Draft(IsolationProbe(level="none", features=[], gaps=[], canaries={})),
        )

    def _hold(self, ledger: Ledger) -> None:
        self.book = Book(ledger, self.folder.ledger)
        ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        bench = Bench(self.book, self.folder, self.stages)
        self.bench = bench
        self.door = Door(bench, self.orders.rig_key, self.settings, ours, self.faults.append)

    def open(self) -> None:
        self.door.start(self.assigned.append)

    def close(self) -> None:
        self.door.close()
        self.book.close()
        self.theirs.close()

    def reopen(self) -> None:
        """Start again from the files, with a new socket."""
        self.close()
        key = self.orders.rig_key
        size = witnessed(self.folder.outbox, key.public)
        self._hold(Ledger.open(self.folder.ledger, key, now=clock.stamp, witnessed=size))

    def _opening(self) -> Event:
        data = LedgerOpened(
            ledger=self.orders.ledger,
            rig=self.orders.rig,
            rig_key=self.orders.rig_key.public.base64,
            versions={},
            target="cpu",
            image=None,
            machine={},
        )
        return ENVELOPES["ledger_opened"](
            id=clock.event_id(),
            assignment=None,
            lane=None,
            actor="harness",
            at=clock.stamp(),
            boot=clock.boot_id(),
            mono_ns=clock.mono_ns(),
            cause=None,
            command=None,
            data=data,
        )

    def events(self, kind: str | None = None) -> list[Any]:
        """Payloads of the events in the file."""
        rows = recorded(self.folder.ledger)
        return [row.event.data for row in rows if kind is None or row.type == kind]

    def types(self) -> list[str]:
        """Types of the events in the file, without those that every test has."""
        return [row.type for row in recorded(self.folder.ledger)][3:]

    def receipt(self, name: str | None) -> Receipt:
        assert name is not None
        raw = (self.folder.outbox / name).read_bytes()
        return open_receipt(raw, self.orders.rig_key.public)

    def files(self, place: str) -> list[str]:
        return sorted(path.name for path in (self.state / "inbox" / place).iterdir())

    def reasons(self) -> list[Path]:
        return sorted((self.state / "inbox" / "refused").glob("*.reason.json"))

    @contextmanager
    def supervisor(self, *prefix: str) -> Iterator["subprocess.Popen[bytes]"]:
        """The real supervisor as a process, on the door's socket; prefix: what starts it."""
        env = {
            "PYTHONPATH": str(ROOT),
            "PATH": os.environ["PATH"],
            "THERMITE_STATE": str(self.state),
            "THERMITE_FD_PEER": str(self.theirs.fileno()),
        }
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "supervisor"],
            env=env,
            pass_fds=[self.theirs.fileno()],
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()


class Knock:
    """A supervisor that says what a test wants."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.peer = Peer(live.theirs, live.uid)
        self._n = 100
        until(lambda: isinstance(self.peer.receive(), Hello), "the door's hello")

    def send(self, message: ToHarness, body: bytes | None = None) -> None:
        assert self.peer.send(message, body)

    def offer(self, raw: bytes, path: Path | None = None) -> ToSupervisor:
        """Drop a file, offer it, and return the answer."""
        path = path or self.live.orders.drop(raw)
        found = path.lstat()
        self._n += 1
        message = Offer(
            n=self._n,
            name=name_text(os.fsencode(path.name)),
            dev=found.st_dev,
            ino=found.st_ino,
            sha256=hashlib.sha256(raw).hexdigest(),
        )
        self.send(message, raw)
        return self.answer(self._n)

    def answer(self, n: int) -> ToSupervisor:
        """The next answer to an offer."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            if self.live.faults:
                raise self.live.faults[0]
            message = self.peer.receive()
            if message is None:
                time.sleep(0.005)
            elif not isinstance(message, Hello):
                assert message.n == n
                return message
        raise TimeoutError("the door does not answer")

    def decided(self, raw: bytes) -> Decided:
        answer = self.offer(raw)
        assert isinstance(answer, Decided), answer
        return answer

    def accepted(self, raw: bytes) -> Decided:
        answer = self.decided(raw)
        assert answer.outcome == "accepted", answer
        return answer

    def refused(self, raw: bytes) -> Decided:
        answer = self.decided(raw)
        assert answer.outcome == "refused", answer
        return answer

    def waits(self, raw: bytes, path: Path | None = None) -> Wait:
        answer = self.offer(raw, path)
        assert isinstance(answer, Wait), answer
        return answer

    def fetches(self, raw: bytes) -> Fetch:
        answer = self.offer(raw)
        assert isinstance(answer, Fetch), answer
        return answer


class NoStages:
    """For rigs whose test imports nothing: asking for a stage is a fault of the test."""

    def __getattr__(self, name: str) -> object:
        raise InfrastructureError(f"this test has no stages, and {name} was asked for")


def until(done: Callable[[], object], what: str) -> None:
    """Wait for something that another process or thread does."""
    limit = time.monotonic() + PATIENCE_S
    while not done():
        if time.monotonic() > limit:
            raise TimeoutError(what)
        time.sleep(0.02)
