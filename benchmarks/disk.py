"""The goals that wait for a disk: on the disk of FOLDER, and with each of its syncs delayed.

What an append adds to its sync is processor time, about the same on every disk, and a disk may
answer a sync in 0.2 ms or in 4. So the same rows are measured once more in a process of its own,
where a small preloaded library lets each fsync and fdatasync, of ours and of the peer's alike,
take so many milliseconds more than the disk does. `disk.py [FOLDER]`, else the current folder.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.append import AIM, ROUNDS_OF_NINE, Raw, Row, now, opened, play, run_event
from thermite.command.signing_key import SigningKey
from thermite.ledger.append import Ledger
from thermite.schema.event import Event

COMMITS: Final = {1: 60, 10: 40, 100: 20}
PRODUCERS: Final = 64
DELAYS_MS: Final = (2, 4)
"""The disks of ledger and signing, 2.1, answered 220 to 570 syncs a second."""
DELAY: Final = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static int delayed(int done) {
    int error = errno;
    long ms = atol(getenv("SYNC_DELAY_MS"));
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) == -1 && errno == EINTR) {}
    errno = error;
    return done;
}
int fsync(int fd) { return delayed(syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { return delayed(syscall(SYS_fdatasync, fd)); }
"""
"""Lets each sync of a process take longer, and fails where the disk failed."""


def appended(folder: Path) -> Iterator[Row]:
    """Ours beside raw sqlite3 with the same pragmas, by the wall."""
    key = SigningKey.generate()
    for group, count in COMMITS.items():
        raw, ratios = Raw(folder / f"raw-wall-{group}.db"), []
        with Ledger.create(folder / f"ours-wall-{group}.db", opened(key), key, now=now) as ledger:
            for turn in range(ROUNDS_OF_NINE):
                ours, peer = play(ledger, raw, turn * count * group, group, count)
                ratios.append(peer.wall / ours.wall)
        many = "1 event" if group == 1 else f"{group:,} events"
        yield Row(f"append, {many} a commit, wall, of raw sqlite3", AIM[group], ratios)


def produced(folder: Path) -> Row:
    """64 threads that each wait for their event to be durable, of the same one at a time."""
    key, ratios = SigningKey.generate(), []
    with Ledger.create(folder / "many.db", opened(key), key, now=now) as ledger:
        for turn in range(ROUNDS_OF_NINE):
            events = [run_event(turn * 10_000 + at) for at in range(16 * PRODUCERS)]
            grouped = walled(partial(together, ledger.append, events))
            alone = [run_event(turn * 10_000 + 5_000 + at) for at in range(PRODUCERS)]
            lock = threading.Lock()

            def one_at_a_time(one: list[Event], lock: threading.Lock = lock) -> object:
                with lock:
                    return ledger.append(one)

            single = walled(partial(together, one_at_a_time, alone))
            ratios.append((len(events) / grouped) / (len(alone) / single))
    return Row(f"{PRODUCERS} durable producers, of one commit each", 15, ratios)


def together(append: Callable[[list[Event]], object], events: Sequence[Event]) -> None:
    """Append from 64 threads at once; each waits for its own before it goes on."""

    def produce(own: Sequence[Event]) -> None:
        for event in own:
            append([event])

    threads = [
        threading.Thread(target=produce, args=(events[at::PRODUCERS],)) for at in range(PRODUCERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def walled(act: Callable[[], object]) -> float:
    """Return how long something takes by the wall, s."""
    start = time.perf_counter()
    act()
    return time.perf_counter() - start


def delayed(folder: Path) -> Iterator[Row]:
    """The same rows with each sync delayed by 2 and by 4 ms."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="delay-") as name:
        library = build(Path(name))
        for ms in DELAYS_MS:
            environment = os.environ | {"LD_PRELOAD": str(library), "SYNC_DELAY_MS": str(ms)}
            with tempfile.TemporaryDirectory(dir=folder, prefix="delayed-") as place:
                done = subprocess.run(
                    [sys.executable, __file__, "--json", place],
                    env=environment,
                    stdout=subprocess.PIPE,
                    check=True,
                )
            for row in msgspec.json.decode(done.stdout, type=list[Row]):
                yield Row(f"{row.goal}, each sync delayed by {ms} ms", row.floor, row.rounds)


def build(folder: Path) -> Path:
    """Compile the library that delays; `missing` says whether it can be."""
    source, library = folder / "delay.c", folder / "delay.so"
    source.write_text(DELAY)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


def missing() -> str | None:
    """Return why no sync can be delayed here, or None."""
    if shutil.which("cc") is None:
        return "not measured: delaying each sync takes a C compiler, and there is no cc here"
    return None


def main() -> None:
    """Print the rows of the disk itself, then those with each sync delayed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--json", action="store_true", help="the disk's own rows alone, as JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder, prefix="disk-") as name:
        folder = Path(name)
        if args.json:
            rows = [*appended(folder), produced(folder)]
            sys.stdout.buffer.write(msgspec.json.encode(rows))
            return
        for row in (*appended(folder), produced(folder)):
            print(row.line(), flush=True)
        why = missing()
        print(why or "\nwith each sync of either side delayed:")
        for row in () if why else delayed(folder):
            print(row.line(), flush=True)


if __name__ == "__main__":
    main()
