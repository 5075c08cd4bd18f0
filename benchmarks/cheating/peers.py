"""How other harnesses measure and decide, each rule written again, small, by ourselves.

They are rules seen in harnesses for optimised code, not runs of those harnesses. All run real
processes and check real answers. What differs is where the time comes from, what it is
compared with, and what a run can find of the runs before it. Source: the design page on
judging, 1.3 and 2.4.
"""

import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Final

HERE: Final = Path(__file__).parent
SHOWN: Final = 1_050_000
"""The input that a candidate's author sees; all peers measure it."""
LONGEST_S: Final = 60.0
BEST_OF: Final = 10
CALLS: Final = 5
"""Timed calls of the rule that keeps a process warm, and runs of the rule that reads its clock."""
PAIRS: Final = 8
MARGIN: Final = 1.01
"""The pairs' rule asks for more than 1 %; the stored rules take whatever is less."""


class WrongError(Exception):
    """The candidate's answer is not the known one, or it gave none."""


@dataclass(frozen=True)
class Yard:
    """A judge's folder as such judges have it: answers, stored best and both programs in one."""

    folder: Path

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, program: str) -> Iterator["Yard"]:
        """Lay a candidate out beside the champion; at the end all of it is gone."""
        folder.mkdir()
        try:
            for name, source in (("champion", "champion"), ("candidate", program)):
                (folder / name).mkdir()
                shutil.copy(HERE / f"candidates/{source}.py", folder / name / "solve.py")
            for name in ("driver.py", "answers.json"):
                shutil.copy(next((HERE / "kit").rglob(name)), folder / name)
            (folder / "work").mkdir()
            (folder / "params.json").write_text(json.dumps({"n": SHOWN}))
            yield cls(folder)
        finally:
            shutil.rmtree(folder)

    @property
    def answer(self) -> str:
        """The known answer."""
        return str(json.loads((HERE / "kit/answers.json").read_text())[str(SHOWN)])

    def argv(self, arm: str, *rest: object) -> list[str]:
        """Return the command that runs an arm."""
        program = self.folder / arm / "solve.py"
        return [
            sys.executable,
            "-I",
            "-S",
            "-B",
            *map(str, (self.folder / "driver.py", program)),
        ] + [str(word) for word in rest]

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of every run: a home in the judge's folder."""
        return {"PATH": "/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8"}

    def ran(self, arm: str) -> tuple[float, str]:
        """Run an arm once; return the seconds on this process's clock, and what it printed.

        Raises:
            WrongError: its answer is not the known one.
        """
        out = self.folder / "work" / "out"
        out.mkdir(exist_ok=True)
        said = self.folder / "work" / "said"
        with said.open("wb") as stdout:  # no pipe: what a run leaves behind could hold it open
            began = time.perf_counter()
            done = subprocess.run(
                self.argv(arm, self.folder / "params.json", out),
                cwd=self.folder / "work",
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                timeout=LONGEST_S,
                check=False,
            )
            took = time.perf_counter() - began
        found = out / "answer"
        if done.returncode or not found.exists() or found.read_text() != self.answer:
            raise WrongError
        shutil.rmtree(out)
        return took, said.read_text()

    def crowns(self, found: float, rule: "Callable[[Yard, str], float]") -> bool:
        """Return whether a time beats the stored best, which is the champion's from its own day."""
        stored = self.folder / "best.json"
        if not stored.exists():
            stored.write_text(json.dumps({"seconds": rule(self, "champion")}))
        return found < float(json.loads(stored.read_text())["seconds"])


def _once(yard: Yard, arm: str) -> float:
    return yard.ran(arm)[0]


def _best(yard: Yard, arm: str) -> float:
    return min(yard.ran(arm)[0] for _ in range(BEST_OF))


def _own_clock(yard: Yard, arm: str) -> float:
    """Believe the last line that the run printed, as its own clock has it."""
    lines = [yard.ran(arm)[1].splitlines()[-1] for _ in range(CALLS)]
    return median(float(json.loads(line)["seconds"]) for line in lines)


def _warm(yard: Yard, arm: str) -> float:
    """Call one process again and again on the input that it has answered already.

    Raises:
        WrongError: one of its answers is not the known one.
    """
    with subprocess.Popen(
        yard.argv(arm),
        cwd=yard.folder / "work",
        env=yard.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        times = []
        for _ in range(1 + CALLS):
            began = time.perf_counter()
            print(SHOWN, file=process.stdin, flush=True)
            said = process.stdout.readline() if process.stdout else ""
            times.append(time.perf_counter() - began)
            if said.strip() != yard.answer:
                process.kill()
                raise WrongError
        process.kill()
    return fmean(times[1:])


def _stored(rule: Callable[[Yard, str], float]) -> Callable[[Yard], bool]:
    def crowned(yard: Yard) -> bool:
        if not (yard.folder / "best.json").exists():
            yard.crowns(0.0, rule)
        return yard.crowns(rule(yard, "candidate"), rule)

    return crowned


def _paired(yard: Yard) -> bool:
    """Run both in turn and compare what they took together."""
    took: dict[str, list[float]] = {"champion": [], "candidate": []}
    for _ in range(PAIRS):
        for arm, times in took.items():
            times.append(yard.ran(arm)[0])
    return sum(took["champion"]) > MARGIN * sum(took["candidate"])


RULES: Final[Mapping[str, Callable[[Yard], bool]]] = {
    "best single time": _stored(_once),
    f"stored best of {BEST_OF}": _stored(_best),
    "timer in its process": _stored(_own_clock),
    "warm calls, same input": _stored(_warm),
    f"mean of {PAIRS} pairs": _paired,
}


def crowned_at(rule: str, program: str, folder: Path, tries: int) -> int | None:
    """Return at which try a rule crowned a program, None when it did in none of them."""
    with Yard.opened(folder / "yard", program) as yard:
        for number in range(1, tries + 1):
            with contextlib.suppress(WrongError, OSError, ValueError, IndexError, KeyError):
                if RULES[rule](yard):
                    return number
    return None
