"""The full selftest by command: a rig's own ledger, or a throw-away one, and a file of noise.

Source: the design page on judging, 3.7.
"""

import json
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from thermite.errors import NotFoundError, UsageError
from thermite.harness import clock
from thermite.harness.judge_here import Question
from thermite.harness.local_job import LocalJudge
from thermite.judge.simulate.recorded import FEWEST
from thermite.kit.known import BASE, CANDIDATES
from thermite.ledger.opening import check_place
from thermite.ledger.place import WriterLock
from thermite.schema.event import RigSelftest, Run
from thermite.schema.kit import Kit


class Recorder:
    """The runs of a selftest's blocks, in order."""

    def __init__(self) -> None:
        self._runs: list[tuple[str, int]] = []

    def hear(self, runs: Sequence[Run]) -> None:
        """Take the runs of one block that counts."""
        self._runs += [(run.cell, run.record.t_ns) for run in runs if run.record is not None]

    def write(self, file: Path, what: str) -> bool:
        """Write them as a noise file, and return whether there are enough for one.

        A cell's times are scaled to the first cell's mean: cells differ, and that is no noise.

        Raises:
            UsageError: the file is there already, or can't be made.
        """
        if len(self._runs) < FEWEST:
            return False
        means = {
            cell: math.fsum(found) / len(found)
            for cell in dict.fromkeys(cell for cell, _ in self._runs)
            if (found := [math.log(ns) for one, ns in self._runs if one == cell])
        }
        first = next(iter(means.values()))
        t_ns = [max(1, round(ns * math.exp(first - means[cell]))) for cell, ns in self._runs]
        whole = {"schema_version": 1, "what": what, "t_ns": t_ns}
        try:
            with file.open("x", encoding="utf-8") as out:
                out.write(json.dumps(whole) + "\n")
        except OSError as error:
            raise UsageError(f"{file} can't be written: {error.strerror}") from None
        return True


def check_state(state: Path) -> None:
    """Refuse a folder that a rig is served from at this moment, or where none can be.

    Raises:
        LedgerError: another process writes its ledger, or it would lie on a network filesystem.
    """
    ledger = state / "ledger.db"
    check_place(ledger)
    if ledger.exists():
        WriterLock(ledger).release()


def program_of(kit_folder: Path) -> Path:
    """Return the folder of a kit's `base`, the program that a selftest runs.

    Raises:
        NotFoundError: the kit has none.
    """
    folder = kit_folder / CANDIDATES / BASE
    if not folder.is_dir():
        raise NotFoundError(
            f"there is no {folder}: a selftest runs the kit's {CANDIDATES}/{BASE} against itself"
        )
    return folder


def full_selftest(
    judge: LocalJudge,
    kit: Kit,
    program: Path,
    question: Question,
    recorder: Recorder,
    *,
    count: int | None = None,
) -> RigSelftest:
    """Measure a program against itself, with a known gain; the ledger gets what was seen.

    Args:
        count: counted blocks; None for as many as a selftest has.
    """
    contract = question.contract(kit, judge)
    return judge.selftest(judge.commit(program), contract, "full", recorder.hear, count)


@dataclass(frozen=True)
class Setting:
    """In what a recording was made; load: of the minute before, of all processors."""

    processors: int
    load: float
    is_realtime: bool

    @classmethod
    def now(cls, *, is_realtime: bool) -> "Setting":
        """Look at this machine before it is measured: afterwards the load is our own."""
        return cls(os.cpu_count() or 1, os.getloadavg()[0], is_realtime)


def described(found: RigSelftest, kit: Kit, cells: Sequence[str], setting: Setting) -> str:
    """Return what a noise file says of itself."""
    names = ", ".join(cells)
    priority = "real-time runs" if setting.is_realtime else "runs at normal priority"
    return (
        f"kit {kit.name}, cells {names}, both arms the same program; {priority};"
        f" {setting.processors} processors at load {setting.load:.1f}; graded {found.grade};"
        f" {clock.stamp()[:10]}"
    )
