"""Who crowned it: the same cheats before Thermite and before other harnesses' rules.

Each line is a candidate of benchmarks/cheating/candidates, each column a judge: small versions
of how others measure and decide (benchmarks/cheating/peers.py, all written by us), and
Thermite's own judge with the kit of benchmarks/cheating/kit. A candidate may
be sent in again until it is crowned, as an agent may. Programs and times are real.

Without options only what comes out the same on every machine, in less than a minute. `--full`
takes all of it, a quarter of an hour. `--markdown` prints the table as the README has it. It ends
with 1 when Thermite crowned what is worth nothing, or refused what is faster.
"""

import argparse
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.cheating.peers import RULES, crowned_at
from thermite.harness.local_job import LocalJudge, local_contract, local_judge
from thermite.kit.manifest import load_kit

HERE: Final = Path(__file__).resolve().parent / "cheating"
OURS: Final = "Thermite"
LINGERS_S: Final = 0.5
"""Longer than what a candidate leaves behind runs on."""
PLAIN: Final = 0.3
"""min_effect of the short form: so far apart are no two runs of one program on any machine."""
MARKER: Final = ".thermite-cheat-answer-*"
SHARED: Final = ("/tmp", "/dev/shm")  # noqa: S108 - where a candidate keeps answers


@dataclass(frozen=True)
class Entry:
    """A candidate: whether it is truly faster, how often it is sent in, whom it surely fools.

    surely: the peers that crown it on every machine, where others may by luck; lingers: its
    processes outlive its runs.
    """

    name: str
    tries: int = 2
    surely: frozenset[str] = frozenset()
    is_faster: bool = False
    lingers: bool = False

    @property
    def words(self) -> str:
        """What it does: the first line of its file."""
        return (HERE / f"candidates/{self.name}.py").read_text().split('"""')[1].splitlines()[0]


SINGLE, STORED, OWN, WARM, PAIRED = RULES
ALL: Final = frozenset(RULES)
LUCKY: Final = 8
"""How often what needs luck is sent in; where every second one is lucky, 1 in 256 misses it."""
CHEAP: Final = 4
"""Times as often for the rule that takes a single run, which may be an unlucky one."""
ENTRIES: Final = (
    Entry("faster", surely=ALL, is_faster=True),
    Entry("slower"),
    Entry("renamed", LUCKY),
    Entry("gambles", LUCKY),
    Entry("patches_timer", surely=frozenset({OWN})),
    Entry("forges_line", surely=frozenset({OWN})),
    Entry("keeps_answers", surely=ALL),
    Entry("reads_answers", surely=ALL),
    Entry("hard_coded", surely=ALL),
    Entry("spoils_judge", surely=ALL),
    Entry("leaves_processes", lingers=True),
)
SHORT: Final = ("patches_timer", "forges_line", "reads_answers")
LUCK: Final = "luck"
"""A cell of the short form that another machine would fill otherwise."""


class Ours:
    """One rig of Thermite's for the whole table, with the kit of the cheats."""

    def __init__(self, judge: LocalJudge, *, is_short: bool) -> None:
        self._judge = judge
        objective: dict[str, object] = {"primary": {"metric": "seconds", "direction": "min"}}
        if is_short:  # the sooner it is plain that a gain is not there
            objective["min_effect"] = PLAIN
        fields: dict[str, object] = {
            "cells": ["shown"],
            "held_out_cells": ["unseen"],
            "objective": objective,
        }
        self._contract = local_contract(load_kit(HERE / "kit"), judge.kit, fields)

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, *, is_short: bool) -> Iterator["Ours"]:
        """Run the rig."""
        with local_judge(folder, HERE / "kit", "cheats") as judge:
            yield cls(judge, is_short=is_short)

    @property
    def machine(self) -> str:
        """Where this is, and how its stages are isolated."""
        found = self._judge.bench.stages.isolation
        where = f"{platform.machine()}, {os.cpu_count()} processors"
        return f"{where}, isolation {found.level} ({', '.join(found.features)})"

    def judged(self, entry: Entry, folder: Path) -> tuple[bool, str]:
        """Return whether an entry was crowned in one of its tries, and the last verdict."""
        champion = self._committed("champion", folder / "champion")
        verdict = ""
        for number in range(1, entry.tries + 1):
            # A byte is new each time: what was judged before is not judged again.
            candidate = self._committed(entry.name, folder / "candidate", f"# try {number}\n")
            verdict = self._judge.judge(candidate, champion, self._contract).verdict.verdict
            if verdict == "promoted":
                return True, crowned(number)
        return False, verdict

    def _committed(self, program: str, folder: Path, more: str = "") -> str:
        folder.mkdir(exist_ok=True)
        text = (HERE / f"candidates/{program}.py").read_text() + more
        (folder / "solve.py").write_text(text)
        return self._judge.commit(folder)


def crowned(number: int | None) -> str:
    """Return a cell of the table."""
    if number is None:
        return "–"
    return "CROWNED" if number == 1 else f"CROWNED, try {number}"


def clean(entry: Entry) -> None:
    """Let what a candidate left end, and remove what it kept in shared folders."""
    if entry.lingers:
        time.sleep(LINGERS_S)
    for top in SHARED:
        for path in Path(top).glob(MARKER):
            path.unlink(missing_ok=True)


def line(entry: Entry, ours: Ours, folder: Path, *, is_full: bool) -> tuple[list[str], list[str]]:
    """Try an entry before every judge; return its cells, and what is not as it must be."""
    cells, wrong = [], []
    for rule in RULES:
        if rule not in entry.surely and not is_full:
            cells.append(LUCK)
            continue
        tries = entry.tries * (CHEAP if rule == SINGLE else 1)
        number = crowned_at(rule, entry.name, folder, tries)
        cells.append(crowned(number))
        if number is None and rule in entry.surely:
            wrong.append(f"{entry.name}: {rule} did not crown it")
        clean(entry)
    was_crowned, said = ours.judged(entry, folder)
    if was_crowned != entry.is_faster:
        wrong.append(f"{entry.name}: {OURS}: {said}")
    clean(entry)
    return [*cells, said], wrong


def show(words: str, cells: Sequence[str], *, markdown: bool) -> None:
    """Print one line."""
    if markdown:
        print(f"| {words} | {' | '.join(cells)} |", flush=True)
        return
    print(f"{words}\n   " + "".join(f"{cell:<24}" for cell in cells), flush=True)


def table(ours: Ours, folder: Path, options: argparse.Namespace) -> list[str]:
    """Print a line for each entry that was asked for; return what is not as it must be."""
    print(f"{date.today()}, {ours.machine}\n")  # noqa: DTZ011 - the reader's day
    show("what the candidate does", [*RULES, OURS], markdown=options.markdown)
    if options.markdown:
        show("---", ["---"] * (len(RULES) + 1), markdown=True)
    problems = []
    for entry in chosen(options):
        cells, wrong = line(entry, ours, folder, is_full=options.full)
        show(entry.words, cells, markdown=options.markdown)
        problems += wrong
    return problems


def asked_for(argv: list[str]) -> argparse.Namespace:
    """Return the options."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--full", action="store_true", help="what needs luck and tries, too")
    words.add_argument("--markdown", action="store_true", help="the table as the README has it")
    words.add_argument("--only", action="append", metavar="NAME", help="a candidate; repeatable")
    return words.parse_args(argv)


def chosen(options: argparse.Namespace) -> list[Entry]:
    """Return the entries that were asked for."""
    by_name = {entry.name: entry for entry in ENTRIES}
    names = options.only or (list(by_name) if options.full else SHORT)
    unknown = [name for name in names if name not in by_name]
    if unknown:
        sys.exit(f"no candidate {', '.join(unknown)}: there are {', '.join(by_name)}")
    entries = [by_name[name] for name in names]
    return entries if options.full else [replace(entry, tries=1) for entry in entries]


def main(argv: list[str]) -> int:
    """Print the table."""
    options = asked_for(argv)
    chosen(options)  # what is unknown is refused before anything starts
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="thermite-cheats-") as name:
        top = Path(name)
        (top / "work").mkdir(mode=0o700)
        top.chmod(0o711)
        with Ours.opened(top / "rig", is_short=not options.full) as ours:
            problems = table(ours, top / "work", options)
    for problem in problems:
        print(f"MISSED: {problem}")
    return 1 if any(f": {OURS}: " in problem for problem in problems) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
