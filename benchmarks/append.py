"""Durable appends a second, beside raw sqlite3 with the same pragmas in the same folder.

Ours encodes, decodes again, hashes, grows the tree and signs; the peer inserts bytes that are
ready, in a table of the same columns without triggers. Both sync at each commit, so the disk
decides. They take turns, commit by commit, and each round's ratio is its own. What ours adds is
processor time, about the same on every disk: the last column says how long raw's commit must
take for the aim to be kept, and on a disk that answers faster it is missed.

Aim: at one event a commit at least 0.90 of raw, at 10 and 100 events at least 0.80. Run it on
the disk that matters: `append.py [FOLDER]`, else the current folder.
"""

import hashlib
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from thermite.campaign.fold import fold
from thermite.campaign.state import State
from thermite.command.instant import write_instant
from thermite.command.signing_key import SigningKey
from thermite.ledger.append import Ledger
from thermite.ledger.encode import decode_all, encode_all
from thermite.ledger.replay import PAGE_ROWS
from thermite.schema.event import ENVELOPES, Check, CommandRefused, Event, LedgerOpened, Run
from thermite.schema.stage import IsolationRecord, ProofOfZero, RunRecord

ROUNDS: Final = 15
ROUNDS_OF_NINE: Final = 9
"""As ledger and signing, 3.12, asks: the median of at least nine rounds."""
COMMITS: Final = {1: 100, 10: 60, 100: 20}
"""Events in a commit, and how many commits of each side make a round."""
AIM: Final = {1: 0.90, 10: 0.80, 100: 0.80}
# What the ledger's writer sets, and what its table holds, without what guards it.
PRAGMAS: Final = ("journal_mode=WAL", "synchronous=FULL", "busy_timeout=5000")
TABLE: Final = (
    "CREATE TABLE events(seq INTEGER PRIMARY KEY, type TEXT NOT NULL, body BLOB NOT NULL,"
    " hash BLOB NOT NULL, dedup TEXT) STRICT"
)


BODIES: Final = "SELECT body FROM events ORDER BY seq"


def now() -> str:
    """Return the time as the ledger's notes have it."""
    return write_instant(datetime.now(UTC))


def run_event(number: int) -> Event:
    """Return the commonest event of a campaign, with ids as random as real ones."""
    digest = hashlib.sha256(b"%d" % number).hexdigest()
    record = RunRecord(
        t_ns=41_237_004 + number,
        utime_ns=40_100_000,
        stime_ns=1_000_000,
        nvcsw=2,
        nivcsw=1,
        minflt=311,
        majflt=0,
        maxrss_kib=4200,
        cpus=[1],
        started_at=now(),
        suspended_ns=0,
        psi_cpu_us=12,
        steal_ticks=0,
    )
    isolation = IsolationRecord(
        level="users+namespaces",
        features=["nnp", "seccomp", "landlock:7", "pidns"],
        network="netns",
        user="run",
        uid=58_001,
        gaps=[],
        proof=ProofOfZero(survivors=0, rounds=1, kill_ms=0.8, swept=0),
    )
    data = Run(
        attempt=7,
        tries=1,
        stage="confirm",
        block=number % 40,
        cell="n256",
        arm="candidate",
        position=number % 2,
        record=record,
        flags=[],
        isolation=isolation,
        outcome="ok",
        reason=None,
    )
    return ENVELOPES["run"](
        id=digest[:32],
        assignment=digest[32:],
        lane=0,
        actor="judge",
        at=now(),
        boot="b0b1c2d3" * 4,
        mono_ns=86_400_000_000_000 + number,
        cause=digest[:32],
        command=None,
        data=data,
    )


def campaign_event(number: int) -> Event:
    """Return a run or its check in turn: of a real campaign's events they are three quarters."""
    run = run_event(number)
    if number % 2 == 0:
        return run
    data = Check(
        attempt=7,
        tries=1,
        stage="confirm",
        block=number % 40,
        cell="n256",
        arm="candidate",
        passed=True,
        fields={"max_abs_error": "0.0000152"},
        reasons=[],
    )
    common = {name: getattr(run, name) for name in Event.__struct_fields__ if name != "data"}
    return ENVELOPES["check"](**common, data=data)


def refusal(number: int) -> Event:
    """Return an event of the mean size of a campaign's."""
    event = run_event(number)
    message = (
        "this command is for rig 3fa98f1c3fa98f1c3fa98f1c3fa98f1c, and this rig is another: sign it"
    )
    data = CommandRefused(
        sha256=event.id * 2, size=1204, name="7f.cmd.json", code="wrong_rig", message=message
    )
    return ENVELOPES["command_refused"](
        id=event.id,
        assignment=None,
        lane=None,
        actor="harness",
        at=event.at,
        boot=event.boot,
        mono_ns=event.mono_ns,
        cause=None,
        command=event.id * 2,
        data=data,
    )


def opened(key: SigningKey) -> Event:
    """Return event 1."""
    data = LedgerOpened(
        ledger="0f" * 16,
        rig=key.public.id,
        rig_key=key.public.base64,
        versions={},
        target="cpu",
        image=None,
        machine={},
    )
    return ENVELOPES["ledger_opened"](
        id="00" * 16,
        assignment=None,
        lane=None,
        actor="harness",
        at=now(),
        boot="b0b1c2d3" * 4,
        mono_ns=1,
        cause=None,
        command=None,
        data=data,
    )


class Raw:
    """The peer: an insert and a COMMIT."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        for pragma in PRAGMAS:
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.execute(TABLE)
        self._seq = 0

    def append(self, rows: Sequence[tuple[str, bytes, bytes]]) -> None:
        """Write rows in one transaction."""
        numbered = [(self._seq + at, *row, None) for at, row in enumerate(rows, 1)]
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", numbered)
        self._connection.execute("COMMIT")
        self._seq += len(rows)


@dataclass(frozen=True)
class Row:
    """One goal: what it compares, the least ratio, and the ratio of each round."""

    goal: str
    floor: float
    rounds: list[float]

    def line(self) -> str:
        """Return it as a row of the page's table."""
        low, middle, high = statistics.quantiles(self.rounds, n=4)
        kept = "kept" if middle >= self.floor else "**missed**"
        return (
            f"| {self.goal} | ≥ {self.floor:.2f} | {middle:.2f} | {low:.2f} to {high:.2f}"
            f" | {kept} |"
        )


@dataclass
class Side:
    """One of the two that take turns; wall, cpu: s so far."""

    wall: float = 0.0
    cpu: float = 0.0

    def take(self, commit: Callable[[], object]) -> None:
        """Do one commit and add what it took."""
        wall, cpu = time.perf_counter(), time.process_time()
        commit()
        self.wall += time.perf_counter() - wall
        self.cpu += time.process_time() - cpu


def play(ledger: Ledger, raw: Raw, first: int, group: int, commits: int) -> tuple[Side, Side]:
    """Let both do their commits in turn.

    What a side writes is made just before its turn, as in a rig: who comes right after the
    other's sync would meet a processor whose caches that emptied, with whatever it does first.
    """
    ours, peer = Side(), Side()
    for at in range(commits):
        for turn in (at, at + 1):
            events = [campaign_event(first + at * group + one) for one in range(group)]
            rows = encode_all(events)
            ready = [*zip(rows.types, rows.bodies, rows.leaves, strict=True)]
            if turn % 2 == 0:
                ours.take(partial(ledger.append, events))
            else:
                peer.take(partial(raw.append, ready))
    return ours, peer


def replay(path: Path) -> State:
    """Decode every event of a ledger and return the state that they mean; no hash is checked."""
    state = State()
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as file:
        rows = file.execute(BODIES)
        while page := rows.fetchmany(PAGE_ROWS):  # as the ledger reads them
            for event in decode_all([body for (body,) in page]) or ():
                fold(state, state.seq + 1, event)
    return state


def used(act: Callable[[], object]) -> float:
    """Return the processor time that something takes, s."""
    start = time.process_time()
    act()
    return time.process_time() - start


def spread(values: Sequence[float]) -> str:
    """Return a median with its middle half."""
    low, middle, high = statistics.quantiles(values, n=4)
    return f"{middle:6.2f} (middle half {low:.2f} to {high:.2f})"


def measure(folder: Path, group: int) -> None:
    """Print the line of one group size."""
    key = SigningKey.generate()
    raw = Raw(folder / f"raw-{group}.db")
    commits = COMMITS[group]
    walls, cpus, each, cost, added = [], [], [], [], []
    with Ledger.create(folder / f"ours-{group}.db", opened(key), key, now=now) as ledger:
        for turn in range(ROUNDS):
            ours, peer = play(ledger, raw, turn * commits * group, group, commits)
            walls.append(peer.wall / ours.wall)
            cpus.append(peer.cpu / ours.cpu)
            each.append((commits * group / ours.wall, commits * group / peer.wall))
            cost.append(ours.cpu / commits / group * 1e6)
            added.append((ours.wall - peer.wall) / commits * 1e3)
    fast, theirs = (statistics.median(side) for side in zip(*each, strict=True))
    kept = "kept" if statistics.median(walls) >= AIM[group] else "MISSED"
    needed = statistics.median(added) * AIM[group] / (1 - AIM[group])
    print(
        f"{group:>4} a commit: ours {fast:8.0f}/s  raw {theirs:8.0f}/s"
        f"  of raw {spread(walls)}, aim >= {AIM[group]:.2f}: {kept}; of its CPU {spread(cpus)}"
        f", {statistics.median(cost):.0f} us of CPU an event; raw's commit took"
        f" {group / theirs * 1e3:.2f} ms, and the aim needs {needed:.2f} ms",
        flush=True,
    )


def main() -> None:
    """Print the table."""
    parent = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
    with tempfile.TemporaryDirectory(dir=parent, prefix="append-") as folder:
        for group in COMMITS:
            measure(Path(folder), group)


if __name__ == "__main__":
    main()
