"""Real runs of edits whose gain is known: what moves code, what changes nothing, what gains.

The simulation (`verdicts.py`) knows the truth because it draws it; here the truth is made. A
null edit adds, calls or reorders functions around the demo kit's kernel; an A/A edit changes a
constant that nothing reads, under load; a control takes away work of a known share, repeated
rows that the champion computes twice. Each is judged as `thermite judge` does, at the default
smallest gain of 3 %, on this machine.

Aims: no null and no A/A edit promoted; at least 17 of 20 controls, worth +5 % on a rig graded
quiet and +10 % on one graded usable. On another grade the controls are not measured, and that
is said.
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from thermite.harness.judge_here import Question
from thermite.harness.local_job import LocalJudge, local_judge
from thermite.judge.simulate.figures import Share
from thermite.kit.manifest import load_kit
from thermite.schema.kit import Kit
from thermite.shipped import shipped

KIT: Final = shipped("kits/demo-cpu")
CELLS: Final = ("even", "odd")
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

    def measure(self, title: str, champion: str, candidates: Mapping[str, str]) -> Counter[str]:
        """Judge each candidate, print one line for all, and return the verdicts' counts."""
        begun = time.monotonic()
        contract = Question(cells=CELLS).contract(self._kit, self._judge)
        against = self._commit(champion)
        self._judge.selftest(against, contract)
        found: Counter[str] = Counter()
        gains = []
        for name, text in candidates.items():
            told = self._judge.judge(self._commit(text), against, contract, name).verdict
            found[told.verdict] += 1
            gains.append(told.gain)
            print(f"  {name}: {told.verdict}", file=sys.stderr, flush=True)
        known = sorted(gain for gain in gains if gain is not None)
        middle = f"{100 * known[len(known) // 2]:+.1f} %" if known else "none"
        words = ", ".join(f"{count} {verdict}" for verdict, count in found.most_common())
        selftest = self._judge.bench.book.state.selftest
        self.grade = selftest.grade if selftest is not None else "not graded"
        print(
            f"{title:<34} {words}; middle gain {middle}; graded {self.grade};"
            f" {time.monotonic() - begun:.0f} s",
            flush=True,
        )
        return found

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
    parser.add_argument("--burn", type=int, default=2 * (os.cpu_count() or 1))
    return parser.parse_args()


def main() -> int:
    """Print one line for each kind of edit, and whether the aims were kept."""
    wanted = arguments()
    kit = load_kit(KIT)
    kept = []
    with (
        tempfile.TemporaryDirectory(dir="/var/tmp", prefix="thermite-real-") as name,
        open_to_all(Path(name)),
        local_judge(Path(name) / "rig", KIT, kit.name) as judge,
    ):
        project = Path(name) / "project"
        project.mkdir()
        bench = Bench(judge, kit, project)
        nulls = {f"moved-{n}": moved(n) for n in range(wanted.nulls)}
        kept.append(bench.measure(f"{wanted.nulls} nulls that move code", KERNEL, nulls))
        share = WORTH.get(bench.grade)
        promoted = None
        if share is None:
            print(f"controls: not measured: this rig is {bench.grade}, not quiet or usable")
        else:
            controls = {f"control-{n}": plain() for n in range(wanted.controls)}
            title = f"{wanted.controls} controls of {100 * share:+.0f} %"
            promoted = bench.measure(title, slowed(share), controls)["promoted"]
        with loaded(wanted.burn):
            alike = {f"alike-{n}": marked(n) for n in range(wanted.soak)}
            title = f"{wanted.soak} A/A beside {wanted.burn} busy processes"
            kept.append(bench.measure(title, KERNEL, alike))
    false = sum(counts["promoted"] for counts in kept)
    print(f"aim: no null promoted: {false} were: {'kept' if not false else 'MISSED'}")
    if promoted is not None:
        bound = 1.0 - Share(count=wanted.controls - promoted, of=wanted.controls).at_most
        verdict = "kept" if promoted >= NEEDED * wanted.controls else "MISSED"
        print(
            f"aim: 17 of 20 controls promoted: {promoted} of {wanted.controls}, at least"
            f" {100 * bound:.0f} % at 95 %: {verdict}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
