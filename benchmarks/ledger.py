"""What the ledger is held to, measured beside its peers: the table of docs/reference/guarantees.md.

Each row is a ratio of two sides that take turns in this very process, so that a busy machine
slows both; each figure is the median of nine rounds, with its middle half. `--write` puts the
table into the page, with date, machine and load; nobody types a figure there. Rows that wait
for a disk are about the disk of FOLDER (`ledger.py [--write] [--long] [FOLDER]`, else the
current folder); `--long` adds the row that takes a million events.
"""

import argparse
import json
import os
import platform
import sqlite3
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import disk, eventsourced
from benchmarks.append import (
    BODIES,
    ROUNDS_OF_NINE,
    Raw,
    Row,
    campaign_event,
    now,
    opened,
    play,
    refusal,
    replay,
    run_event,
    used,
)
from thermite.audit.verify import audit
from thermite.campaign.fold import fold
from thermite.campaign.state import State
from thermite.command.note import Checkpoint, sign_note
from thermite.command.signing_key import SigningKey
from thermite.ledger.append import Ledger
from thermite.ledger.opening import look
from thermite.ledger.replay import recorded
from thermite.schema.event import Event

PAGE: Final = Path(__file__).parents[1] / "docs" / "reference" / "guarantees.md"
BEGIN: Final = "<!-- measured: benchmarks/ledger.py --write -->\n"
END: Final = "<!-- end of what was measured -->\n"
CPU_COMMITS: Final = {1: 1000, 1000: 6}
HEAD: Final = ("| goal | floor | ratio | middle half | |", "|---|---|---|---|---|")
DELAYED: Final = (
    "No disk of this machine, but its own with each sync delayed, of ours and of the peer's alike:"
)
STORY: Final = 20_000
"""Events of the ledger that is read."""
MEMORY: Final = Path("/dev/shm")  # noqa: S108 (a folder of its own is made in it)
A_MILLION: Final = 1_000_000


def appended(memory: Path) -> Iterator[Row]:
    """Ours beside raw sqlite3 with the same pragmas, by the processor.

    Args:
        memory: in memory where there is room, since the processor time of a sync is not ours.
    """
    key = SigningKey.generate()
    for (group, count), floor in zip(CPU_COMMITS.items(), (0.65, 0.33), strict=True):
        raw, ratios = Raw(memory / f"raw-{group}.db"), []
        with Ledger.create(memory / f"ours-{group}.db", opened(key), key, now=now) as ledger:
            for turn in range(ROUNDS_OF_NINE):
                ours, peer = play(ledger, raw, turn * count * group, group, count)
                ratios.append(peer.cpu / ours.cpu)
        many = "1 event" if group == 1 else f"{group:,} events"
        yield Row(f"append, {many} a commit, CPU, of raw sqlite3", floor, ratios)


def encoded(memory: Path) -> Row:
    """Ours beside raw sqlite3 that encodes its events too, which nobody can leave out."""
    key, ratios = SigningKey.generate(), []
    raw, encoder = Raw(memory / "encoding.db"), msgspec.json.Encoder()

    def write(lists: Sequence[Sequence[Event]]) -> None:
        for events in lists:
            raw.append([("run", encoder.encode(event), bytes(32)) for event in events])

    with Ledger.create(memory / "encoded.db", opened(key), key, now=now) as ledger:
        for turn in range(ROUNDS_OF_NINE):
            firsts = range(turn * 4000, (turn + 1) * 4000, 1000)
            lists = [[campaign_event(first + at) for at in range(1000)] for first in firsts]
            ratios.append(used(partial(write, lists)) / used(partial(each, ledger.append, lists)))
    return Row("append, 1,000 events a commit, CPU, of raw sqlite3 that encodes", 0.47, ratios)


def each(append: Callable[[Sequence[Event]], object], lists: Sequence[Sequence[Event]]) -> None:
    """Append lists one after the other."""
    for events in lists:
        append(events)


def read(folder: Path) -> Iterator[Row]:
    """Reading with each thing that ours does, of SQLite handing over the bodies alone."""
    path = folder / "story.db"
    key = write_story(path).public
    address = f"{path.absolute().as_uri()}?mode=ro"

    def ceiling() -> None:
        with closing(sqlite3.connect(address, uri=True)) as file:
            for _ in file.execute(BODIES):
                pass

    def verified() -> None:
        state = State()
        for row in recorded(path):
            fold(state, row.seq, row.event)

    def by_json() -> None:
        with closing(sqlite3.connect(address, uri=True)) as file:
            for (body,) in file.execute(BODIES):
                json.loads(body)

    sqlite, replayed = "of SQLite alone", partial(replay, path)
    reopened = partial(look, path, key, 0)
    for goal, floor, act, peer in (
        (f"chain, tree and note at open, CPU, {sqlite}", 0.13, reopened, ceiling),
        (f"replay (decode and apply), CPU, {sqlite}", 0.25, replayed, ceiling),
        (f"verified replay, CPU, {sqlite}", 0.14, verified, ceiling),
        (f"whole audit with its history, CPU, {sqlite}", 0.13, partial(audit, path), ceiling),
        ("replay, CPU, of json.loads without applying", 2.8, replayed, by_json),
    ):
        yield Row(goal, floor, [used(peer) / used(act) for _ in range(ROUNDS_OF_NINE)])


def write_story(path: Path) -> SigningKey:
    """Make a ledger whose events may follow one another in any number: refused orders."""
    key = SigningKey.generate()
    with Ledger.create(path, opened(key), key, now=now) as ledger:
        for first in range(0, STORY, 1000):
            ledger.append([refusal(first + at) for at in range(1000)])
    return key


def signed(folder: Path) -> Row:
    """A thousand events' processor time, of the same with the checkpoint that they need."""
    key = SigningKey.generate()
    point = Checkpoint(
        rig=key.public.id, ledger="0f" * 16, size=1000, root=bytes(32), head=bytes(32), time=now()
    )
    ratios = []
    with Ledger.create(folder / "signed.db", opened(key), key, now=now) as ledger:
        for turn in range(ROUNDS_OF_NINE):
            events = [run_event(turn * 1000 + at) for at in range(1000)]
            whole = used(partial(ledger.append, events))
            note = statistics.median(used(partial(sign_note, point, key)) for _ in range(50))
            ratios.append((whole - note) / whole)
    return Row("append without its checkpoint's signature, CPU, of append", 0.98, ratios)


def grown(folder: Path) -> Row:
    """An event's processor time among the first ten thousand, of one before the millionth."""
    key = SigningKey.generate()
    with Ledger.create(folder / "grown.db", opened(key), key, now=now) as ledger:
        costs = [
            used(partial(ledger.append, [refusal(first + at) for at in range(1000)]))
            for first in range(0, A_MILLION, 1000)
        ]
    early, late = costs[1:10], costs[-9:]
    return Row(
        "append at ten thousand events, CPU, of append at a million",
        0.90,
        [young / old for young, old in zip(early, late, strict=True)],
    )


def into_page(begin: str, end: str, where: str, lines: Sequence[str]) -> None:
    """Write a table between its two marks in the page of guarantees."""
    head, rest = PAGE.read_text(encoding="utf-8").split(begin)
    tail = rest.split(end)[1]
    table = "\n".join(lines)
    PAGE.write_text(f"{head}{begin}\n{where}\n\n{table}\n\n{end}{tail}", encoding="utf-8")


def machine(folder: Path, loads: tuple[float, float], what: str = "Measured") -> str:
    """Return where and when this was measured, in one paragraph."""
    told: dict[str, Any] = {}
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        told.setdefault(name.strip(), value.strip())
    return (
        f"{what} on {datetime.now(UTC):%Y-%m-%d} on {os.cpu_count()} CPUs"
        f" ({told.get('model name', platform.machine())}), Linux {platform.release()}, Python"
        f" {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {filesystem(folder)};"
        f" load average {loads[0]:.1f} when it began and {loads[1]:.1f} when it ended,"
        " this program's own among it."
    )


def filesystem(folder: Path) -> str:
    """Return the type of the filesystem that a folder lies on."""
    here = str(folder.resolve())
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    holding = [(len(at), kind) for at, kind in mounts if f"{here}/".startswith(f"{at}".rstrip("/"))]
    return max(holding, default=(0, "an unknown filesystem"))[1]


def rows(folder: Path, *, long: bool) -> Iterator[Row]:
    """Give each row as soon as it is measured."""
    memory = MEMORY if os.access(MEMORY, os.W_OK) else folder
    with tempfile.TemporaryDirectory(dir=memory, prefix="ledger-") as name:
        yield from disk.appended(folder)
        yield from appended(Path(name))
        yield encoded(Path(name))
        if eventsourced.missing() is None:
            yield from eventsourced.appended(Path(name))
    yield disk.produced(folder)
    yield from read(folder)
    yield signed(folder)
    if long:
        yield grown(folder)
    if eventsourced.missing() is None:
        story, events = ("grown.db", A_MILLION) if long else ("story.db", STORY)
        yield from eventsourced.replayed(folder, folder / story, events)


def main() -> None:
    """Print the table, and write it into the page when asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--write", action="store_true", help="into docs/reference/guarantees.md")
    parser.add_argument("--long", action="store_true", help="a million events, too")
    args = parser.parse_args()
    before = os.getloadavg()[0]
    lines: list[str] = []

    def tell(*said: str) -> None:
        lines.extend(said)
        print(*said, sep="\n", flush=True)

    tell(*HEAD)
    with tempfile.TemporaryDirectory(dir=args.folder, prefix="ledger-") as folder:
        for row in rows(Path(folder), long=args.long):
            tell(row.line())
        if disk.missing() is None:
            tell("", DELAYED, "", *HEAD)
            for row in disk.delayed(Path(folder)):
                tell(row.line())
        where = machine(Path(folder), (before, os.getloadavg()[0]))
    print(*filter(None, [eventsourced.missing(), disk.missing()]), f"\n{where}", sep="\n")
    if args.write:
        into_page(BEGIN, END, where, lines)


if __name__ == "__main__":
    main()
