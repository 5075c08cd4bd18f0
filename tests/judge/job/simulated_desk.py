"""A desk on a simulated rig: source trees by commit, a list of appended events."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from tests.simulated_rig import SimulatedRig, program
from thermite.judge.build.store import BuildStore
from thermite.judge.job import Desk, judge
from thermite.kit.export import SourceRefused
from thermite.schema.contract import Contract, RepoAt
from thermite.schema.event import Block, Check, Decision, JudgeStarted, Run, Verdict
from thermite.schema.job import Job, JudgeFact, Revision
from thermite.schema.kit import (
    BuildSection,
    CheckMetric,
    CheckSection,
    Kit,
    RateMetric,
    RunSection,
    TimeMetric,
)
from thermite.schema.stage import Entry
from thermite.schema.strict import Strict

KIT = Kit(
    schema_version=1,
    name="tiny",
    target="cpu",
    build=BuildSection(
        command=["sh", ".kit/bench/build.sh"], outputs=["out/bench"], copy=["bench"]
    ),
    cells={
        "small": {"n": 128, "work": 1000},
        "large": {"n": 256, "work": 4000},
        "held": {"n": 192, "work": 2000},
    },
    run=RunSection(
        command=["{build:out/bench}", "{params}", "{kit:bench/driver.py}", "{out}"],
        copy=["bench/driver.py"],
    ),
    metrics={
        "speed": RateMetric(unit="FLOP/s", work="work"),
        "seconds": TimeMetric(),
        "accuracy": CheckMetric(field="acc"),
    },
    check=CheckSection(command=["python3", "{kit:check.py}", "{params_json}", "{out}"]),
)


class Killed(BaseException):
    """The harness is gone: nothing catches this."""


@dataclass
class SimulatedDesk:
    """What a judge is lent.

    sources: a program, or a list of problems of a refused source, by name; kill_before and
    kill_after: number of the append around which the harness ends.
    """

    folder: Path
    sources: dict[str, Any]
    contract: Contract
    rig: SimulatedRig
    kit: Kit = KIT
    appended: list[list[Strict]] = field(default_factory=list)
    kill_before: int | None = None
    kill_after: int | None = None
    models: dict[str, Path] = field(default_factory=dict)
    stopping: Callable[[], bool] = lambda: False

    def desk(self) -> Desk:
        kit_folder = self.folder / "kit"
        (kit_folder / "bench").mkdir(parents=True, exist_ok=True)
        for name in ("bench/build.sh", "bench/driver.py", "check.py", "kit.json"):
            (kit_folder / name).write_text("# the kit's own\n")
        scratch, store = self.folder / "scratch", self.folder / "store"
        scratch.mkdir(exist_ok=True)
        store.mkdir(exist_ok=True)
        return Desk(
            stages=self.rig,
            kit=self.kit,
            kit_folder=kit_folder,
            export=self._export,
            store=BuildStore(store),
            append=self._append,
            stopping=self.stopping,
            scratch=scratch,
            toolchain="cc 12.2.0",
            models=self.models,
        )

    def job(self, *, candidate: object = "new", champion: object = "old", **changed: object) -> Job:
        """Return a job on two of the sources, an attempt unless something else is said."""
        plain = Job(
            kind="attempt",
            assignment="a" * 32,
            attempt=1,
            tries=1,
            candidate=revision(str(candidate)),
            champion=None if champion is None else revision(str(champion)),
            k=1,
            order_seed="33" * 32,
            contract=self.contract,
            contract_sha256="c" * 64,
            kit=RepoAt(repo="tiny", commit="f" * 40),
            judged_outputs={},
            history=[],
        )
        return msgspec.structs.replace(plain, **changed)

    @property
    def facts(self) -> list[Strict]:
        """All that was appended, in order."""
        return [fact for transaction in self.appended for fact in transaction]

    @property
    def history(self) -> list[JudgeFact]:
        """What the ledger would hand to the next job of this try."""
        kinds = JudgeStarted | Run | Check | Block | Decision
        return [fact for fact in self.facts if isinstance(fact, kinds)]

    def of(self, kind: type) -> list:  # type: ignore[type-arg]
        """Return the appended facts of one kind."""
        return [fact for fact in self.facts if isinstance(fact, kind)]

    def _append(self, payloads: Sequence[Strict]) -> None:
        number = len(self.appended)
        if number == self.kill_before:
            raise Killed
        self.appended.append([as_stored(payload) for payload in payloads])
        if number == self.kill_after:
            raise Killed

    def _export(self, commit: str) -> list[Entry]:
        source = next(
            text for name, text in self.sources.items() if revision(name).commit == commit
        )
        if isinstance(source, list):
            raise SourceRefused(source)
        return [
            Entry(path=b"program.json", kind="file", data=source),
            Entry(path=b"out/bench", kind="file", data=b"what the candidate put there"),
        ]


def as_stored(payload: Strict) -> Strict:
    """Return a payload as it comes back from the ledger's JSON."""
    return msgspec.json.decode(msgspec.json.encode(payload), type=type(payload))


def revision(name: str) -> Revision:
    """Return a commit and tree that stand for a name."""
    commit = name.encode().hex().ljust(40, "0")
    return Revision(commit=commit, tree=commit[::-1])


def contract(**changed: object) -> Contract:
    """Return a hill climb over two cells and a held-out one."""
    whole: dict[str, object] = {
        "schema_version": 1,
        "name": "c",
        "campaign": "hill_climb",
        "task": "faster",
        "project": {"repo": "p", "commit": "0" * 40},
        "cells": ["small", "large"],
        "held_out_cells": ["held"],
        "objective": {"primary": {"metric": "speed"}},
    }
    return msgspec.convert(whole | changed, Contract)


ACCURATE = contract(guards=[{"metric": "accuracy"}])


def desk(tmp_path: Path, new: object, old: object = None, **changed: object) -> SimulatedDesk:
    """Return a desk with a candidate and a champion, and a guard on accuracy."""
    sources = {"old": old or program(name="old", ms=40), "new": new}
    plain: dict[str, object] = {"contract": ACCURATE, "rig": SimulatedRig(tmp_path / "rig")}
    return SimulatedDesk(tmp_path, sources, **(plain | changed))  # type: ignore[arg-type]


def verdict_of(made: SimulatedDesk, **changed: object) -> Verdict:
    """Judge; return the verdict, after which no stage runs on."""
    verdict = judge(made.job(**changed), made.desk())
    assert isinstance(verdict, Verdict)
    assert made.rig.is_idle
    return verdict
