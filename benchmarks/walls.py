"""Every number that the walls are asked for, beside the number reached here: one table a level.

    python benchmarks/walls.py [LEVEL ...]

At each level that this machine gives, or at those named; as root, levels with users run in a pid
namespace of its own with three bystanders. It takes no network and some four minutes for two
levels. `most` is the figure asked for on a quiet machine of two CPUs; a line over it says MISSED,
and within four times of it `(busy?)` beside. Collecting stands beside the bare system calls that
copy and hash the same files: an ext4 without a journal passes over inodes that were freed in the
last minutes one by one, so that making thousands of files there soon after thousands went takes
seconds, whoever makes them. The whole thousand of hostile stages is
`python -m tests.attack.many`; here are some dozens of them.
"""

import contextlib
import hashlib
import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psutil

from benchmarks.spawn import FILES, bare
from tests.attack.candidates import BOMB, COMETS, DEMOTERS, KILL_LOOP
from tests.attack.many import run as run_hostile
from tests.leased import lease_uids
from tests.levels import LEVELS, OWN_USER, rig_at, why_not
from tests.open_folder import open_folder
from thermite.rig.stages import Slot, Stages
from thermite.rig.start import FOLDER
from thermite.schema.stage import CollectLimits, Entry, LevelName, Limits, StageResult

SPAWN: Final = {"users+namespaces": (6, 10), "users": (3, 5), "namespaces": (6, 10), "none": (3, 5)}
"""Most that a run may cost beside a bare one, ms: median and 90th percentile."""
BUSY: Final = 4
"""How many times over a figure a busy machine may be (the design's own allowance)."""
MIB: Final = 1 << 20
WIDE: Final = CollectLimits(entries=20_000, levels=32, total_bytes=512 * MIB)
HOSTILE: Final = 60
_TIMES: Final = 2
_OF_BARE: Final = 1.6
"""Most that judging each file, confined, and telling of it may cost; our own figure."""
COUNTS: Final = "x = 0\nfor i in range(1000000): x += i"


@dataclass(frozen=True)
class Row:
    """One number; most: what is asked for, reached: what was found, both in `unit`."""

    what: str
    most: float
    reached: float
    unit: str

    def line(self) -> str:
        """Return it as a line of the table."""
        kept = self.reached <= self.most
        verdict = "kept" if kept else "MISSED"
        if not kept and self.reached <= BUSY * self.most:
            verdict += " (busy?)"
        asked, found = f"{self.most:g} {self.unit}", f"{self.reached:.3g} {self.unit}"
        return f"  {self.what:<58} {asked:>12} {found:>12}  {verdict}"


class Bench:
    """One rig at one level, with what is measured on it."""

    def __init__(self, rig: Stages, level: LevelName) -> None:
        self.rig, self.level = rig, level
        self.env = {"PATH": rig.path_variable}
        self._programs = 0

    def sh(self, slot: Slot, text: str, **limits: float | None) -> StageResult:
        """Run shell text."""
        given = Limits(**{"timeout_s": 60, **limits})  # type: ignore[arg-type]
        return slot.run(["sh", "-c", text], env=self.env, limits=given)

    def python(self, slot: Slot, text: str, **limits: float | None) -> StageResult:
        """Run Python text; it lies in the work folder."""
        given = Limits(**{"timeout_s": 60, **limits})  # type: ignore[arg-type]
        return slot.run(self._program(slot, text), env=self.env, limits=given)

    def timed(self, slot: Slot, text: str) -> StageResult:
        """Run Python text as a run that is timed, with all that is watched then."""
        given = Limits(timeout_s=60, rss_mib=1024, disk_mib=1024)
        return slot.run(self._program(slot, text), env=self.env, limits=given, timed=True)

    def _program(self, slot: Slot, text: str) -> list[str]:
        self._programs += 1
        name = f"program{self._programs}.py"
        slot.place([Entry(path=name.encode(), kind="file", data=text.encode())])
        return ["python3", "-I", "-S", name]

    def spawn(self) -> Iterator[Row]:
        """A run of /bin/true beside a bare one, with this process small and with 1 GiB."""
        medians = []
        with self.rig.slot("run-0") as slot:
            for size in (0, 1 << 30):
                weight = bytearray(size)
                weight[::4096] = b"1" * len(weight[::4096])
                added = sorted(self._added(slot) for _ in range(120))
                medians.append(statistics.median(added))
                if not size:
                    tenth = statistics.quantiles(added, n=10)[-1]
        most, most_tenth = SPAWN[self.level]
        yield Row("run of /bin/true, more than a bare one: median", most, medians[0], "ms")
        yield Row("  the same: 90th percentile", most_tenth, tenth, "ms")
        yield Row("  the same with 1 GiB in the harness: more", 0.5, medians[1] - medians[0], "ms")

    def _added(self, slot: Slot) -> float:
        start = time.perf_counter()
        slot.run(["/bin/true"], env={}, limits=Limits(timeout_s=60))
        return (time.perf_counter() - start) * 1e3 - bare()

    def ends(self) -> Iterator[Row]:
        """From a stage's end to the proof that nothing of it is left."""
        few = [COMETS] if self.level in OWN_USER else []
        sleepers = "import os, time\nfor _ in range(9):\n if os.fork() == 0: time.sleep(60)\n"
        with self.rig.slot("run-0") as slot:
            ends = [
                self._end(self.python(slot, text, timeout_s=0.4, processes=10))
                for text in [*few, f"{sleepers}time.sleep(0.1)"] * 5
            ]
            yield Row("stage's end to proven zero, 10 processes: worst of 10", 100, max(ends), "ms")
            if self.level != "none":
                bombs = [
                    self._end(self.python(slot, BOMB, timeout_s=0.6, processes=256))
                    for _ in range(5)
                ]
                fifo = "killer_priority" not in self.rig.isolation.gaps
                most = 250 if fifo and self.level in OWN_USER else 1500
                yield Row("  fork bomb of 256: worst of 5", most, max(bombs), "ms")
            began = time.perf_counter()
            result = self.sh(slot, "setsid sleep 60 & exit 0")
            took = (time.perf_counter() - began) * 1e3 - result.record.t_ns / 1e6
            yield Row("main's exit to the answer, a daemon holds the output", 500, took, "ms")

    @staticmethod
    def _end(result: StageResult) -> float:
        proof = result.isolation.proof
        return float("inf") if proof is None or proof.survivors else proof.kill_ms

    def limits(self) -> Iterator[Row]:
        """From a limit crossed to the stage's stamped end; the interpreter's start is in it."""
        stamp = "print(time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW), flush=True)\n"
        memory = "x = b'1' * (200 << 20)\n"
        disk = "for n in range(4): open(f'x{n}', 'wb').write(bytes(7 << 20))\n"
        for what, most, text, given in (
            ("memory over its limit to the end", 250, memory, {"rss_mib": 100}),
            ("disk over its limit to the end", 1000, disk, {"disk_mib": 16}),
        ):
            with self.rig.slot("run-0") as slot:
                program = f"import time\n{stamp}{text}{stamp}time.sleep(20)"
                result = self.python(slot, program, **given)
            begun, *crossed = map(int, result.stdout.split())
            reached = begun + result.record.t_ns - (crossed or [begun])[0]
            yield Row(what, most, max(0, reached) / 1e6, "ms")

    def beside_files(self) -> Iterator[Row]:
        """A run with 49,000 files in its folder beside the same run with none."""
        ratios = []
        with self.rig.slot("check") as full, self.rig.slot("run-0") as none:
            full.place(Entry(path=b"d%d/%d" % (n % 50, n), kind="file") for n in range(FILES))
            for number in range(20):
                times = {}
                for name, slot in (("full", full), ("none", none))[:: 1 if number % 2 else -1]:
                    times[name] = self.timed(slot, COUNTS).record.t_ns
                ratios.append(times["full"] / times["none"])
        yield Row("time beside 49,000 files, of its twin's", 1.05, statistics.median(ratios), "x")

    def freezing(self) -> Iterator[Row]:
        """How long a block takes to begin beside what other slots run."""
        busy = "import os, time\nfor _ in range(15):\n if os.fork() == 0: break\nwhile 1: pass"
        loop = KILL_LOOP.format("SIGCONT") if self.level != "none" else ""
        for what, most, text in (
            ("16 busy processes of another slot frozen", 100.0, busy),
            ("  two that send SIGCONT to all in a loop", 1000.0, f"import os\nos.fork()\n{loop}"),
            ("  eight of them", 1000.0, f"import os\nfor _ in range(3): os.fork()\n{loop}"),
        ):
            if text.endswith("\n"):
                continue
            with self.rig.slot("worker-0") as slot:
                thread = threading.Thread(
                    target=self.python, args=(slot, text), kwargs={"timeout_s": 4}
                )
                thread.start()
                time.sleep(0.7)
                began = time.perf_counter()
                with self.rig.block():
                    took = (time.perf_counter() - began) * 1e3
                slot.stop()
                thread.join()
            yield Row(what, most, took, "ms")

    def samplers(self) -> Iterator[Row]:
        """What an attendant takes of one core, beside processes that sleep and beside files."""
        sleep = "import os, time\nfor _ in range({}):\n if os.fork() == 0: break\ntime.sleep(9.5)"
        for what, most, count in (
            ("sampling the memory of 10 processes", 1.0, 9),
            ("  of 500 processes", 5.0, 499),
        ):
            with self.rig.slot("run-0") as slot:
                stage = partial(self.python, slot, sleep.format(count), rss_mib=60_000)
                share = self._share(partial(stage, processes=512), 8)
            yield Row(what, most, share, "% core")
        with self.rig.slot("run-0") as slot:
            slot.place(Entry(path=b"d%d/%d" % (n % 50, n), kind="file") for n in range(FILES))
            share = self._share(partial(self.sh, slot, "sleep 9", disk_mib=4096), 7)
        yield Row("sampling a folder of 49,000 files", 10, share, "% core")

    @staticmethod
    def _share(stage: Callable[[], object], seconds: float) -> float:
        """Return the most of a core, %, that one of the spawner's own children takes meanwhile.

        The kernel tells it in hundredths of a second: eight seconds make steps of an eighth of 1 %.
        """
        thread = threading.Thread(target=stage)
        thread.start()
        time.sleep(1.2)
        before = _cpu_of_attendants()
        time.sleep(seconds)
        after = _cpu_of_attendants()
        thread.join()
        most = max(after[pid] - before[pid] for pid in after.keys() & before.keys())
        return round(most, 2) / seconds * 100

    def files(self) -> Iterator[Row]:
        """Placing and collecting."""
        small = b"x" * 1024
        with (
            self.rig.slot("builder-0") as slot,
            tempfile.TemporaryDirectory(dir="/var/tmp") as into,
        ):
            began = time.perf_counter()
            slot.place(
                Entry(path=b"out/d%d/%d" % (n % 50, n), kind="file", data=small)
                for n in range(10_000)
            )
            yield Row("10,000 files of 1 KiB placed", 2, time.perf_counter() - began, "s")
            ours, peers = [], []
            for number in range(_TIMES):
                ours.append(self._collected(slot, f"{into}/{number}"))
                peers.append(bare_copy(slot.folder / "out", Path(into) / f"bare{number}"))
            yield Row("  and collected", 1, min(ours), "s")
            yield Row("  of the bare system calls' time", _OF_BARE, min(ours) / min(peers), "x")
        with (
            self.rig.slot("builder-0") as slot,
            tempfile.TemporaryDirectory(dir="/var/tmp") as into,
        ):
            self.sh(slot, "mkdir out; head -c 268435456 /dev/zero > out/x")
            yield Row("256 MiB collected", 1, self._collected(slot, f"{into}/0"), "s")
            whole = hashlib.sha256((Path(into) / "0/out/x").read_bytes()).digest()
            if whole != hashlib.sha256(bytes(256 * MIB)).digest():
                raise RuntimeError("what was collected is not what was written")

    @staticmethod
    def _collected(slot: Slot, into: str) -> float:
        Path(into).mkdir()
        began = time.perf_counter()
        kept = slot.collect(["out"], Path(into), WIDE)
        if kept.problems or not kept.files:
            raise RuntimeError(f"nothing was collected: {kept.problems[:3]}")
        return time.perf_counter() - began

    def flood(self) -> Iterator[Row]:
        """What this process grows by while a stage writes until it is ended for it."""
        mine = psutil.Process()
        with self.rig.slot("run-0") as slot:
            self.sh(slot, "true")
            before = mine.memory_info().rss
            self.sh(slot, "yes | head -c 5368709120")
        yield Row(
            "harness's growth in a flood of output",
            5,
            (mine.memory_info().rss - before) / MIB,
            "MiB",
        )

    def hostile(self) -> Iterator[Row]:
        """Stages that try to live on, and how many processes did."""
        seen = run_hostile(self.rig, self.level, HOSTILE)
        yield Row(f"survivors of {HOSTILE} hostile stages", 0, seen.survivors, "")
        yield Row("  that came to anything else than they must", 0, len(seen.problems), "")
        if self.level in OWN_USER:
            beaten = 0
            with self.rig.slot("run-0") as slot:
                loops = [KILL_LOOP.format("SIGKILL"), KILL_LOOP.format("SIGSTOP"), DEMOTERS]
                for text in loops * 5:
                    end = self._end(self.python(slot, text, timeout_s=0.3, processes=96))
                    beaten += end > 2000  # noqa: PLR2004 - ms: the test of rows 1 and 2
            yield Row("killers of one's own user that beat the killer, of 15", 0, beaten, "")

    def table(self) -> Iterator[Row]:
        """Yield all rows."""
        for part in (
            *(self.spawn, self.files, self.beside_files, self.ends, self.limits, self.freezing),
            *(self.samplers, self.flood, self.hostile),
        ):
            yield from part()


def bare_copy(source: Path, into: Path) -> float:
    """Copy and hash a folder of folders of small files by system calls alone; s."""
    began = time.perf_counter()
    into.mkdir()
    for folder in source.iterdir():
        (into / folder.name).mkdir()
        here, there = (os.open(one / folder.name, os.O_RDONLY) for one in (source, into))
        for name in os.listdir(here):  # noqa: PTH208 - by descriptor
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=here)
            found = os.read(file, os.fstat(file).st_size)
            copy = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o444, dir_fd=there)
            os.write(copy, found)
            hashlib.sha256(found).hexdigest()
            os.close(copy)
            os.close(file)
        os.close(here)
        os.close(there)
    return time.perf_counter() - began


def _cpu_of_attendants() -> dict[int, float]:
    """Return the processor seconds of the spawner's own children, stages left out."""
    found = {}
    for one in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if str(FOLDER) in one.cmdline() and str(FOLDER) in (one.parent() or one).cmdline():
                times = one.cpu_times()
                found[one.pid] = times.user + times.system
    return found


def measure(level: LevelName) -> list[Row]:
    """Print the table of one level and return what was missed."""
    missed = []
    with open_folder() as place, rig_at(level, place) as rig:
        features = ", ".join(rig.isolation.features)
        print(f"\n{level} ({features}; {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f})")
        print(f"  {'':<58} {'at most':>12} {'reached':>12}")
        for row in Bench(rig, level).table():
            print(row.line(), flush=True)
            if row.reached > row.most:
                missed.append(row)
    return missed


def main(names: Sequence[str]) -> int:
    """Print the table of each level that can be had here, or of those that are named."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    lease_uids()
    began, missed = time.monotonic(), 0
    for level in [one for one in LEVELS if one in names] or LEVELS:
        problem = why_not(level)
        if problem is None:
            missed += len(measure(level))
        else:
            print(f"\n{problem}")
    print(f"\n{missed} over what is asked, in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
