"""Every fault of docs/reference/guarantees.md, done once more: one table with what it came to.

The page names the tests that show each promise; they are run here in their short forms, and a
promise is held when each of them passed. `--write` puts the table into the page, with date and
machine; nobody types an outcome there. `faults.py [--write] [--side-by-side N]`; no network.
The long form of the storm of kills is a script of its own: `tests/crash/demo_storm`.
"""

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.ledger import PAGE, into_page, machine

ROOT: Final = Path(__file__).parents[1]
BEGIN: Final = "<!-- run: benchmarks/faults.py --write -->\n"
END: Final = "<!-- end of what was run -->\n"
TABLES: Final = ("Faults that are survived", "Tampering that is found", "Orders")


@dataclass(frozen=True)
class Promise:
    """A row of the page: a promise, and its tests as (file below tests/, name)."""

    text: str
    tests: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Case:
    """One run of one test; outcome: passed, failed or skipped."""

    file: str
    name: str
    outcome: str
    seconds: float


def promises(page: str) -> Iterator[Promise]:
    """Give the promises of the page's tables."""
    for title in TABLES:
        section = page.split(f"## {title}\n")[1].split("\n## ", maxsplit=1)[0]
        for line in section.splitlines():
            if line.startswith("| ") and "shown by" not in line:
                text, shown = (cell.strip() for cell in line.strip("|").rsplit("|", 1))
                yield Promise(text, tuple(_tests(shown)))


def _tests(shown: str) -> Iterator[tuple[str, str]]:
    for part in shown.split(";"):
        file, *names = re.findall(r"`([^`]+)`", part)
        yield from ((file, name) for name in names)


def run(wanted: Sequence[Promise], side_by_side: int) -> tuple[list[Case], int]:
    """Run the tests of all promises, and return what each came to and pytest's own exit code."""
    files = sorted({file for one in wanted for file, _ in one.tests})
    names = sorted({name for one in wanted for _, name in one.tests})
    can = side_by_side > 1 and importlib.util.find_spec("xdist") is not None
    parallel = ["-n", str(side_by_side), "--dist", "loadfile"] if can else []
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        argv = [sys.executable, "-m", "pytest", "-q", "--no-header", f"--junitxml={report}"]
        paths = [f"tests/{file}" for file in files]
        argv += [*parallel, "-k", " or ".join(names), *paths]
        code = subprocess.run(argv, cwd=ROOT, check=False).returncode
        found = list(_cases(report)) if report.exists() else []
    return found, code


def _cases(report: Path) -> Iterator[Case]:
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 (pytest's, just written)
        module, _, group = case.get("classname", "").removeprefix("tests.").partition(".Test")
        name = case.get("name", "").partition("[")[0]
        kinds = {child.tag for child in case}
        failed = kinds & {"failure", "error"}
        outcome = "failed" if failed else "skipped" if "skipped" in kinds else "passed"
        file = module.replace(".", "/") + ".py"
        yield Case(file, group or name, outcome, float(case.get("time", "0")))


def line(promise: Promise, cases: Sequence[Case]) -> str:
    """Return a promise as a row of the table."""
    own = [case for case in cases if (case.file, case.name) in promise.tests]
    missing = set(promise.tests) - {(case.file, case.name) for case in own}
    outcomes = [case.outcome for case in own]
    if "failed" in outcomes or missing:
        word = "**broken**"
    elif "skipped" in outcomes:
        word = "held, some parts not run here" if "passed" in outcomes else "not run here"
    else:
        word = "held"
    seconds = sum(case.seconds for case in own)
    return f"| {promise.text} | {len(own)} | {word} | {seconds:.1f} |"


def main() -> int:
    """Print the table, and write it into the page when asked to; 1: a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="into docs/reference/guarantees.md")
    spare = max(1, min(8, (os.cpu_count() or 1) // 2))
    parser.add_argument("--side-by-side", type=int, default=spare, metavar="N")
    args = parser.parse_args()
    before, start = os.getloadavg()[0], time.monotonic()
    wanted = list(promises(PAGE.read_text(encoding="utf-8")))
    cases, code = run(wanted, args.side_by_side)
    took = time.monotonic() - start
    lines = ["| promise | cases | outcome | s |", "|---|---|---|---|"]
    lines += [line(promise, cases) for promise in wanted]
    where = machine(ROOT, (before, os.getloadavg()[0]), what="Run")
    where += f" The whole took {took:.0f} s, {args.side_by_side} tests side by side."
    print(*lines, "", where, sep="\n")
    if args.write:
        into_page(BEGIN, END, where, lines)
    return 1 if code or any("**broken**" in row for row in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
