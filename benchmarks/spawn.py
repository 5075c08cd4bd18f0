"""A run through the spawner beside a bare posix_spawn of the same program.

The whole round trip of a stage (asked, set up, executed, ended, proven gone, answered) with
the harness small and at 1 GiB, at each isolation level that this machine gives. Aim: at most 3 ms
more than the bare spawn, as a median, and 6 ms at a level with namespaces, and no more of it with
the large harness. All are measured in turn, so that whatever else the machine does meets all; sums
are taken round by round. Last, what an attendant may cost the clock: the recorded time of a run
with 49,000 files in its folder beside the same run with none, aim at most 1.05 times.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from thermite.errors import InfrastructureError
from thermite.rig.stages import Slot
from thermite.rig.start import spawner
from thermite.schema.stage import Entry, Limits

ROUNDS = 150
AIMS_MS = {"users+namespaces": 6.0, "users": 3.0, "namespaces": 6.0, "none": 3.0}
"""Most that a level may add, as a median, ms; the best level first."""
FILES = 49_000
FILE_ROUNDS = 20
FILE_AIM = 1.05
BUSY = ["sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done"]
LARGE = 1 << 30
PROGRAM = "/bin/true"
LIMITS = Limits(timeout_s=60)


def bare() -> float:
    """Return how long a posix_spawn of the program takes to its end, ms."""
    start = time.perf_counter()
    pid = os.posix_spawn(PROGRAM, [PROGRAM], {})
    os.waitpid(pid, 0)
    return (time.perf_counter() - start) * 1e3


def through(slot: Slot, records: list[float]) -> float:
    """Return how long a stage takes from request to answer, ms; note its recorded time."""
    start = time.perf_counter()
    result = slot.run([PROGRAM], env={}, limits=LIMITS)
    took = (time.perf_counter() - start) * 1e3
    records.append(result.record.t_ns / 1e6)
    return took


def row(name: str, values: list[float]) -> float:
    """Print one line and return its median, ms."""
    low, middle, high = statistics.quantiles(values, n=4)
    ninth = statistics.quantiles(values, n=10)[-1]
    print(f"{name:<34} {middle:7.2f} ms   middle half {low:.2f} to {high:.2f}, p90 {ninth:.2f}")
    return middle


def rounds(slot: Slot) -> tuple[list[float], list[float], list[float]]:
    """Measure both in turn, each first in every other round."""
    ours: list[float] = []
    peers: list[float] = []
    records: list[float] = []
    for number in range(ROUNDS):
        both: list[Callable[[], None]] = [
            lambda: ours.append(through(slot, records)),
            lambda: peers.append(bare()),
        ]
        for one in both if number % 2 else reversed(both):
            one()
    return ours, peers, records


def beside_files(full: Slot, none: Slot, path: str) -> float:
    """Return the ratio of recorded times of a timed run, many files in its folder over none."""
    full.place(Entry(path=b"d%d/%d" % (n % 50, n), kind="file") for n in range(FILES))
    limits = Limits(timeout_s=60, rss_mib=1024, disk_mib=1024)
    pairs = []
    for number in range(FILE_ROUNDS):
        times = {}
        for name, slot in (("full", full), ("none", none))[:: 1 if number % 2 else -1]:
            result = slot.run(BUSY, env={"PATH": path}, limits=limits, timed=True)
            times[name] = result.record.t_ns / 1e6
        pairs.append((times["full"], times["none"]))
    row("run beside 49,000 files", [pair[0] for pair in pairs])
    row("the same beside none", [pair[1] for pair in pairs])
    return statistics.median(one / other for one, other in pairs)


def measure(level: str) -> None:
    """Print the table of one level."""
    added: dict[str, float] = {}
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp") as name,
        spawner(Path(name) / "rig", isolation=level) as stages,
        stages.slot("run-0") as slot,
        stages.slot("check") as second,
    ):
        Path(name).chmod(0o711)
        print(f"\nisolation {stages.isolation.level}, {', '.join(stages.isolation.features)}")
        through(slot, [])
        for size, title in ((0, "small harness"), (LARGE, "harness of 1 GiB")):
            weight = bytearray(size)
            weight[::4096] = b"1" * len(weight[::4096])
            ours, peers, records = rounds(slot)
            row(f"bare posix_spawn, {title}", peers)
            row(f"through the spawner, {title}", ours)
            row(f"  t_ns of its record, {title}", records)
            more = [one - peer for one, peer in zip(ours, peers, strict=True)]
            added[title] = row(f"added, {title}", more)
            ratio = statistics.median(one / peer for one, peer in zip(ours, peers, strict=True))
            print(f"{'ratio, ' + title:<34} {ratio:7.2f}")
        ratio = beside_files(second, slot, stages.path_variable)
    verdict = "kept" if ratio <= FILE_AIM else "MISSED"
    print(f"aim: recorded time beside files <= {FILE_AIM} times: {ratio:.3f}: {verdict}")
    verdict = "kept" if max(added.values()) <= AIMS_MS[level] else "MISSED"
    print(f"aim: added median <= {AIMS_MS[level]:g} ms at either size: {verdict}", flush=True)


def main() -> int:
    """Print the table of each level that can be had here, or of those that are named."""
    for level in sys.argv[1:] or AIMS_MS:
        try:
            measure(level)
        except InfrastructureError as error:
            print(f"\nisolation {level}: not measured: {error}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
