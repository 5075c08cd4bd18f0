"""Real runs of edits whose gain is known: what moves code, what changes nothing, what gains.

The simulation (`verdicts.py`) knows the truth because it draws it; here the truth is made. A
null edit adds, calls or reorders functions around the demo kit's kernel; an A/A edit changes a
constant that nothing reads, under load; a control takes away work of a known share, repeated
rows that the champion computes twice. Each is judged as `thermite judge` does, at the default
smallest gain of 3 %, on this machine.

Aims: no null and no A/A edit promoted; at least 17 of 20 controls, worth +5 % on a rig graded
quiet and +10 % on one graded usable. On another grade, or when `--within` leaves no time for all
of them, the controls are not measured, and that is said. `--only controls` measures nothing else:
one cell, 40 blocks for the grade, then some 20 blocks a control. `--realtime` times runs as a rig
does whose `rig.toml` says `realtime_runs = true`: on a busy machine that is the difference between
a noisy rig and a usable one.
"""

import argparse
import contextlib
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from thermite.errors import ThermiteError
from thermite.harness.judge_here import Question
from thermite.harness.local_job import LocalJudge, local_judge
from thermite.judge.simulate.figures import Share
from thermite.kit.manifest import load_kit
from thermite.schema.contract import Contract
from thermite.schema.kit import Kit
from thermite.schema.rig_settings import RigSettings
from thermite.shipped import shipped

KIT: Final = shipped("kits/demo-cpu")
CELLS: Final = ("even", "odd")
CONTROL_CELLS: Final = ("even",)
"""A control's gain is the same in each cell, so one shows it in half of the time."""
GRADE_BLOCKS: Final = 40
"""Blocks that the grade rests on: those of a full selftest (judging, 3.7)."""
WORTH: Final = {"quiet": 0.05, "usable": 0.10}
"""Gain of a control by the rig's grade."""
NEEDED: Final = 0.85
"""17 of 20."""
BURN: Final = "while True: pass"
KERNEL: Final = (KIT / "candidates/base/matmul.c").read_text(encoding="ascii")


def unused(number: int) -> str:
    """Return a function of its own size that nothing calls, kept by the compiler."""
    steps = "\n".join(f"    x = x * {3 + 2 * step} + {number};" for step in range(1 + number % 9))
    return (
        f"__attribute__((used, noinline)) static long spare{number}(long x) {{\n{steps}\n"
        "    return x;\n}\n"
    )


def moved(number: int) -> str:
    """Return the kernel with code around it moved: an added call, unused or reordered functions."""
    where = number % 4
    if where == 0:
        return unused(number) + KERNEL
    if where == 1:
        return KERNEL + unused(number)
    if where == 2:  # noqa: PLR2004 - one of four places
        return unused(number) + KERNEL + unused(number + 1)
    call = f'    __asm__ volatile("" : : "r"(spare{number}(n)));\n'
    head, brace, body = KERNEL.partition("{\n")
    return unused(number) + head + brace + call + body


def marked(number: int) -> str:
    """Return the kernel beside a constant that nothing reads: the same code, another build."""
    return f'__attribute__((used)) static const char mark[] = "{number:08d}";\n{KERNEL}'


def slowed(share: float) -> str:
    """Return a kernel that computes so large a share of its rows twice."""
    again = KERNEL.replace("void matmul(", "static void rows(int rows_, ").replace(
        "i < n", "i < rows_", 1
    )
    return (
        f"{again.replace('/*', '/* twice:', 1)}"
        "void matmul(int n, const double *a, const double *b, double *c) {\n"
        f"    rows((int)(n * {share:.4f} + 0.5), n, a, b, c);\n    rows(n, n, a, b, c);\n}}\n"
    )


def plain() -> str:
    """Return the kernel that a slowed one is measured against, made of the same parts."""
    return slowed(0.0)


class Bench:
    """One rig of this process, and what it said of each kind of edit."""

    def __init__(self, judge: LocalJudge, kit: Kit, folder: Path) -> None:
        self._judge, self._kit, self._folder = judge, kit, folder
        self.grade = ""

    def measure(
        self,
        title: str,
        champion: str,
        candidates: Mapping[str, str],
        *,
        cells: Sequence[str] = CELLS,
        blocks: int | None = None,
        within_s: float = math.inf,
    ) -> Counter[str]:
        """Judge each candidate, print one line for all, and return the verdicts' counts.

        Args:
            blocks: of the selftest before, None for a short one's, 0 for none.
            within_s: time after which no further candidate is begun, s.
        """
        begun = time.monotonic()
        against = self._commit(champion)
        if blocks != 0:
            self.grade_by(champion, cells, blocks)
        contract = self._contract(cells)
        found: Counter[str] = Counter()
        gains = []
        for name, text in candidates.items():
            if time.monotonic() - begun > within_s:
                break
            told = self._judge.judge(self._commit(text), against, contract, name).verdict
            found[told.verdict] += 1
            gains.append(told.gain)
            print(f"  {name}: {told.verdict}", file=sys.stderr, flush=True)
        known = sorted(gain for gain in gains if gain is not None)
        middle = f"{100 * known[len(known) // 2]:+.1f} %" if known else "none"
        words = ", ".join(f"{count} {verdict}" for verdict, count in found.most_common())
        print(
            f"{title:<34} {words}; middle gain {middle}; graded {self.grade};"
            f" {time.monotonic() - begun:.0f} s",
            flush=True,
        )
        return found

    def grade_by(self, champion: str, cells: Sequence[str], blocks: int | None) -> float:
        """Grade the rig by a program against itself; return a block's robust sd, a fraction."""
        contract = self._contract(cells)
        told = self._judge.selftest(self._commit(champion), contract, "short", count=blocks)
        self.grade = told.grade
        return told.figures["robust_sd"] or math.inf

    def _contract(self, cells: Sequence[str]) -> Contract:
        return Question(cells=cells).contract(self._kit, self._judge)

    def _commit(self, text: str) -> str:
        (self._folder / "matmul.c").write_text(text, encoding="ascii")
        return self._judge.commit(self._folder)


@contextlib.contextmanager
def open_to_all(folder: Path) -> Iterator[None]:
    """Let stages' users pass through a folder."""
    folder.chmod(0o711)
    yield


@contextlib.contextmanager
def loaded(processes: int) -> Iterator[None]:
    """Keep so many processes busy at normal priority."""
    burning = [subprocess.Popen([sys.executable, "-I", "-c", BURN]) for _ in range(processes)]
    try:
        yield
    finally:
        for one in burning:
            one.kill()
            one.wait()


def arguments() -> argparse.Namespace:
    """Return how much to measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nulls", type=int, default=20)
    parser.add_argument("--soak", type=int, default=50, help="A/A attempts under load")
    parser.add_argument("--controls", type=int, default=20)
    parser.add_argument("--only", choices=["controls"], help="measure nothing else")
    parser.add_argument("--within", type=float, default=math.inf, help="s, for all controls")
    parser.add_argument("--realtime", action="store_true", help="time runs as a rig set so does")
    parser.add_argument("--burn", type=int, default=2 * (os.cpu_count() or 1))
    wanted = parser.parse_args()
    if wanted.only == "controls":
        wanted.nulls = wanted.soak = 0
    return wanted


def main() -> int:
    """Print one line for each kind of edit, and whether the aims were kept."""
    try:
        return measure_all(arguments())
    except ThermiteError as error:
        print(f"not measured: {error}")
        return 1


def measure_all(wanted: argparse.Namespace) -> int:
    """Measure what is wanted; 0 when it could be."""
    kit = load_kit(KIT)
    settings = RigSettings(realtime_runs=True) if wanted.realtime else None
    kept = []
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="thermite-real-") as name,
        open_to_all(Path(name)),
        local_judge(Path(name) / "rig", KIT, kit.name, settings) as judge,
    ):
        project = Path(name) / "project"
        project.mkdir()
        bench = Bench(judge, kit, project)
        if wanted.nulls:
            nulls = {f"moved-{n}": moved(n) for n in range(wanted.nulls)}
            kept.append(bench.measure(f"{wanted.nulls} nulls that move code", KERNEL, nulls))
        if wanted.controls:
            measure_controls(bench, wanted.controls, wanted.within)
        if wanted.soak:
            with loaded(wanted.burn):
                alike = {f"alike-{n}": marked(n) for n in range(wanted.soak)}
                title = f"{wanted.soak} A/A beside {wanted.burn} busy processes"
                kept.append(bench.measure(title, KERNEL, alike))
    if kept:
        false = sum(counts["promoted"] for counts in kept)
        print(f"aim: no null promoted: {false} were: {'kept' if not false else 'MISSED'}")
    return 0


def measure_controls(bench: Bench, count: int, within_s: float) -> None:
    """Print how many of so many controls were promoted, or why that was not measured."""
    begun = time.monotonic()
    spread = bench.grade_by(plain(), CONTROL_CELLS, GRADE_BLOCKS)
    told = f"graded {bench.grade} (robust sd {100 * spread:.2f} % of {GRADE_BLOCKS} blocks)"
    share = WORTH.get(bench.grade)
    if share is None:
        print(f"controls: not measured: {told}, not quiet or usable")
        return
    found = bench.measure(
        f"{count} controls of {100 * share:+.0f} %",
        slowed(share),
        {f"control-{n}": plain() for n in range(count)},
        cells=CONTROL_CELLS,
        blocks=0,
        within_s=within_s - (time.monotonic() - begun),
    )
    done, promoted = found.total(), found["promoted"]
    bound = 1.0 - Share(count=done - promoted, of=done).at_most if done else 0.0
    said = "kept" if promoted >= NEEDED * count else "MISSED"
    if done < count:
        said = f"not measured: {within_s:.0f} s were enough for {done} of {count}"
    print(
        f"aim: 17 of 20 controls of {100 * share:+.0f} % promoted, {told}: {promoted} of {done}, at"
        f" least {100 * bound:.0f} % at 95 %: {said}"
    )


if __name__ == "__main__":
    sys.exit(main())
