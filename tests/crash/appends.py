"""A campaign's disk as kill -9 leaves it at each append, and what the next harness makes of it.

One campaign is run whole, and at each append that is wanted its rig's folder is copied: as the
append begins, and as soon as it is durable. Nothing of the harness tidies up before a copy is
made, as nothing does after a kill. A new harness goes on from the copy.
"""

import argparse
import copy
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.harness.test_goal_campaigns import GOALS, MANIFEST, WRONG, checked
from tests.simulated_campaign import Home, Life
from thermite.audit.rejudge import rejudge
from thermite.audit.verify import audit
from thermite.harness.folder import RigFolder
from thermite.ledger.replay import recorded
from thermite.schema import event as e

OUTSIDE = {"b-outside/files/README": "an agent may not change this\n"}
CLIMB: Mapping[str, Mapping[str, Any]] = {
    "a-wrong": {"ms": 20, "check": {"line": {"pass": False, "reasons": ["the edge is wrong"]}}},
    "b-outside": {"ms": 20},
    "c-fast": {"ms": 25},
    "d-same": {"ms": 25, "comment": 1},
}
UNLIKELY: Mapping[str, Mapping[str, Any]] = {"a-unlikely": {"ms": 2}}
GOAL: Mapping[str, Mapping[str, Any]] = {
    "a-half": {"ms": 20, "at": {"256": WRONG}},
    "b-overfit": {"ms": 20, "at": {"192": WRONG}},
    "c-all": {"ms": 21},
}


def climb(folder: Path) -> Home:
    """A hill climb with a wrong, a refused, a faster and an equal candidate."""
    home = Home(folder, {"ms": 40}, CLIMB, more=OUTSIDE)
    project = {"repo": "p", "commit": home.project.commit, "editable": ["program.json"]}
    kit = {"repo": home.kit.repo, "commit": home.kit.commit}
    home.contract = {"project": {**project, "kit": kit}}
    return home


def hold(folder: Path) -> Home:
    """A hill climb whose gain is beyond belief: nobody says so in time, and the hold expires."""
    return Home(folder, {"ms": 40}, UNLIKELY, {"judging": {"hold_timeout_s": 1}})


def goal(folder: Path) -> Home:
    """A goal campaign whose third candidate meets all."""
    return Home(folder, {"ms": 40, "at": {"256": WRONG}}, GOAL, GOALS, MANIFEST)


CAMPAIGNS: Mapping[str, Callable[[Path], Home]] = {"climb": climb, "hold": hold, "goal": goal}
_OF_ALL = frozenset(
    {
        e.LaneOpened,
        e.AttemptStarted,
        e.AgentFinished,
        e.BudgetSpent,
        e.CandidateSubmitted,
        e.AttemptEnded,
        e.Build,
        e.Run,
        e.Check,
        e.Verdict,
        e.AssignmentEnded,
    }
)
_OF_A_CLIMB = frozenset(
    {
        e.RigSelftest,
        e.JudgeStarted,
        e.Block,
        e.Decision,
    }
)
KINDS: Mapping[str, frozenset[type]] = {
    "climb": _OF_ALL | _OF_A_CLIMB | {e.CandidateRefused, e.ChampionPromoted},
    "hold": _OF_ALL | _OF_A_CLIMB | {e.Hold, e.HoldResolved},
    "goal": _OF_ALL | {e.GoalChecked},
}
"""What a harness appends by itself in the course of each; other events come with orders."""


@dataclass(frozen=True)
class Cut:
    """A moment of a campaign; append: its number from 1."""

    append: int
    is_durable: bool

    def __str__(self) -> str:
        return f"{'after' if self.is_durable else 'before'} append {self.append}"


def _remove(folder: Path) -> None:
    """Remove a copy of a rig's folder, in which stages' folders may be closed to their owner."""
    for inside, _, _ in os.walk(folder):
        Path(inside).chmod(0o700)
    shutil.rmtree(folder)


class Whole:
    """A campaign that nobody disturbs, and its rig's folder at the moments that are wanted."""

    def __init__(
        self, folder: Path, make: Callable[[Path], Home], wanted: Callable[[Cut], bool]
    ) -> None:
        self._wanted = wanted
        self.home = make(folder)
        self.cuts: list[Cut] = []
        self.life = Life(self.home)
        self.life.book.appending = lambda _: self._look(is_durable=False)
        self.life.book.committed = lambda _: self._look(is_durable=True)
        assert self.life.run(), "a campaign that nobody disturbs comes to its end"

    @property
    def appends(self) -> int:
        """How many there were."""
        return self.life.book.appends

    def kinds(self) -> set[type]:
        """The types of what the harness appended."""
        return {type(row.event.data) for row in recorded(self.home.rig.ledger)}

    def _look(self, *, is_durable: bool) -> None:
        cut = Cut(self.life.book.appends, is_durable)
        if self._wanted(cut):
            self.cuts.append(cut)
            # A spawner clears away what stages left before the next harness starts.
            leave = shutil.ignore_patterns("simulated")
            shutil.copytree(self.home.rig.state, self._at(cut), symlinks=True, ignore=leave)

    def _at(self, cut: Cut) -> Path:
        return self.home.rig.state.with_name(str(cut).replace(" ", "-"))

    def differences(self) -> Iterator[tuple[Cut, str]]:
        """Go on from each moment in turn, and give what differs from the campaign's own end."""
        for cut in self.cuts:
            for difference in self._differences(cut):
                yield cut, difference
            _remove(self._at(cut))

    def _differences(self, cut: Cut) -> Iterator[str]:
        home = copy.copy(self.home)
        home.rig = RigFolder(self._at(cut))
        before = [row.hash for row in recorded(home.rig.ledger)]
        life = Life(home, seed=2)
        if life.assignment.status == "ended":
            life.ledger.close()  # a campaign that has ended is not begun again
        elif not life.run():
            yield "it did not come to its end"
        if results(life) != results(self.life):
            yield f"it came to {results(life)}"
        if checked(life) != checked(self.life):
            yield f"its goals came to {checked(life)}"
        if life.assignment.end_reason != self.life.assignment.end_reason:
            yield f"it ended with {life.assignment.end_reason}"
        judged = [a.started.proposal for a in life.assignment.attempts.values() if a.verdict]
        if len(judged) != len(set(judged)):
            yield f"one was judged twice: {judged}"
        if [row.hash for row in recorded(home.rig.ledger)][: len(before)] != before:
            yield "an event that was durable is gone"
        found = audit(home.rig.ledger).findings
        yield from (f"finding {one.code}" for one in found if one.severity == "finding")
        yield from (f"judged again, {one}" for one in rejudge(home.rig.ledger).differences)


def results(life: Life) -> dict[str, str | None]:
    """Return what came of each proposal; an attempt that a kill ended is made again."""
    attempts = life.assignment.attempts.values()
    return {a.started.proposal or "": a.result for a in attempts if a.result != "killed"}


def main(argv: Sequence[str]) -> int:
    """Cut each campaign off at every append, print a row each, and return 0 when none differs."""
    parser = argparse.ArgumentParser(prog="every_append", description=__doc__)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th append (1)")
    asked = parser.parse_args(argv)
    bad = 0
    for name, make in CAMPAIGNS.items():
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="thermite-appends-") as folder:
            whole = Whole(Path(folder), make, lambda cut: cut.append % asked.every == 0)
            found = list(whole.differences())
        bad += len(found)
        for cut, difference in found:
            sys.stdout.write(f"  {name} {cut}: {difference}\n")
        sys.stdout.write(
            f"{name:<6} {whole.appends} appends, cut off {len(whole.cuts)} times,"
            f" {len(found)} differences, {time.monotonic() - begun:.0f} s\n"
        )
        sys.stdout.flush()
    return 1 if bad else 0
