"""A rig in one process: scripted programs, a hand-turned clock, no users, no processes.

A program is a JSON text, `program.json` in a source tree. Its build copies it to
`out/bench`; its run takes as long as it says; its check prints what it says:

    {"build": {"exit": 1, "log": "...", "killed": "memory", "missing": true, "refused": [..]},
     "ms": 40,  or by the cell's parameter n: {"128": 40, "256": 80},
     "exit": 3, "stderr": "...", "killed": "timeout", "refused": ["out/a is a link"],
     "at": {"256": what it says instead in cells with that parameter n},
     "check": {"line": {...}, "stdout": "...", "exit": 1, "stderr": "...", "killed": "timeout"}}

`SimulatedRig` counts runs from 0; `disturb` and `break_at` say what happens at which run.
It refuses what a real rig would refuse: a timed run outside a block, a slot lent twice.
"""

import json
import os
import random
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from thermite.errors import InfrastructureError
from thermite.rig.stages import Door, Slot, StageCopy, Stages
from thermite.schema.stage import (
    Collected,
    CollectedFile,
    CollectLimits,
    Entry,
    Environment,
    IsolationRecord,
    LevelName,
    LimitName,
    Limits,
    ProofOfZero,
    RunRecord,
    StageResult,
)

OUTPUT = "out/bench"


def program(**said: object) -> bytes:
    """A program's text; equal programs are equal bytes."""
    return json.dumps(said, sort_keys=True).encode()


@dataclass
class Ran:
    """One stage that was run: its slot, arguments and environment."""

    slot: str
    argv: list[str]
    env: dict[str, str]
    limits: Limits
    timed: bool
    params: dict[str, Any] = field(default_factory=dict)


@dataclass
class SimulatedRig:
    """Implements `thermite.rig.stages.Stages`.

    folder: an empty folder for slots and copies; noise: robust sd of a run's time (a
    fraction); disturb: changes of the record by run number; say_at: changes of the program
    by run number; weaker_at: how many runs have begun when one gets another level;
    break_at: run numbers at which the rig itself fails; probe_ns: the
    start-up probe; watch: called with each run and check as it begins.
    """

    folder: Path
    seed: int = 1
    noise: float = 0.002
    level: LevelName = "none"
    probe_ns: int = 500_000
    disturb: dict[int, dict[str, Any]] = field(default_factory=dict)
    say_at: dict[int, dict[str, Any]] = field(default_factory=dict)
    weaker_at: set[int] = field(default_factory=set)
    break_at: set[int] = field(default_factory=set)
    watch: Callable[[Ran], None] = lambda _: None
    ran: list[Ran] = field(default_factory=list)
    now_ns: int = 0
    runs: int = 0
    path_variable: str = "/usr/bin:/bin"
    slot_names: Sequence[str] = ("builder-0", "run-0")
    passed_over: Mapping[str, str] = field(default_factory=dict)
    _folders: int = 0
    _lent: set[str] = field(default_factory=set)
    _in_block: bool = False

    @property
    def isolation(self) -> IsolationRecord:
        """The level that this rig's stages get."""
        return self.record_of_isolation("nobody", None)

    def record_of_isolation(self, user: str, proof: ProofOfZero | None) -> IsolationRecord:
        weaker = proof is not None and user == "run-0" and self.runs in self.weaker_at
        return IsolationRecord(
            level="namespaces" if weaker else self.level,
            features=["landlock:7"],
            network="none",
            user=user,
            uid=0,
            gaps=[],
            proof=proof,
        )

    @contextmanager
    def slot(self, name: str) -> Iterator[Slot]:
        """Lend a slot with an empty folder; two at once of one name are a bug."""
        assert name not in self._lent, f"slot {name} is lent already"
        self._lent.add(name)
        folder = self.new_folder()
        try:
            yield SimulatedSlot(self, name, folder)
        finally:
            self._lent.remove(name)
            remove(folder)

    @contextmanager
    def copy_for(self, slot: str) -> Iterator[StageCopy]:
        """Make an empty stage copy."""
        copy = SimulatedCopy(self.new_folder(), slot)
        try:
            yield copy
        finally:
            remove(copy.path)

    @contextmanager
    def block(self) -> Iterator[None]:
        """Hold the clock; only now are timed runs taken."""
        assert not self._in_block, "a block inside a block"
        self._in_block = True
        try:
            yield
        finally:
            self._in_block = False

    def startup_probe_ns(self, slot: Slot, count: int) -> list[int]:
        """Time nothing."""
        assert isinstance(slot, SimulatedSlot)
        assert self.in_block, "a start-up probe outside a block"
        return [self.probe_ns] * count

    def new_folder(self) -> Path:
        self._folders += 1
        folder = self.folder / f"{self._folders:016x}"
        folder.mkdir(parents=True)
        return folder

    @property
    def in_block(self) -> bool:
        return self._in_block

    @property
    def is_idle(self) -> bool:
        """Whether everything that was lent came back."""
        left = list(self.folder.iterdir()) if self.folder.exists() else []
        return not (self._lent or self._in_block or left)


def remove(folder: Path) -> None:
    """Remove a folder that may hold read-only folders."""
    unlock(folder)
    shutil.rmtree(folder)


def unlock(folder: Path) -> None:
    """Let all of a folder be removed."""
    for here, _, _ in os.walk(folder):
        Path(here).chmod(0o700)


@dataclass
class SimulatedCopy:
    """A stage copy: folders 0555, files 0444 or 0555."""

    path: Path
    slot: str

    def add(self, source: Path, name: str, *, links: bool = False) -> None:
        target = self.path / name
        assert links or not any(one.is_symlink() for one in source.rglob("*")), source
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copyfile(source, target)
            target.chmod(0o555 if source.stat().st_mode & 0o111 else 0o444)
            return
        for here, _, names in os.walk(target, topdown=False):
            for file in (Path(here, one) for one in names if not Path(here, one).is_symlink()):
                file.chmod(0o555 if file.stat().st_mode & 0o111 else 0o444)
            Path(here).chmod(0o555)


@dataclass
class SimulatedSlot:
    """One lent slot; what runs in it is decided by its name."""

    rig: SimulatedRig
    name: str
    folder: Path
    program: dict[str, Any] = field(default_factory=dict)

    def place(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            path = self.folder / os.fsdecode(entry.path)
            if entry.kind == "folder":
                path.mkdir(parents=True, exist_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if entry.kind == "link":
                path.symlink_to(os.fsdecode(entry.data))
            else:
                path.write_bytes(entry.data)
                path.chmod(0o755 if entry.kind == "executable" else 0o644)

    def run(
        self,
        argv: Sequence[str],
        *,
        env: Environment,
        limits: Limits,
        cwd: Path | None = None,
        timed: bool = False,
        settle_ms: int = 0,
        join_output: bool = False,
        readable: Sequence[StageCopy] = (),
        door: Door | None = None,
        log: int | None = None,
    ) -> StageResult:
        assert door is None
        assert log is None
        assert settle_ms >= 0
        assert cwd is None or cwd.is_dir()
        self._sees_only_what_is_readable([*argv, str(cwd or "")], readable)
        assert all(isinstance(c, SimulatedCopy) and c.slot == self.name for c in readable)
        ran = Ran(self.name, list(argv), dict(env), limits, timed)
        self.rig.ran.append(ran)
        if not self.name.startswith("builder"):
            self.rig.watch(ran)
        match self.name.rpartition("-")[0] or self.name:
            case "builder":
                assert join_output
                return self._build()
            case "run":
                assert timed
                assert self.rig.in_block, "a timed run outside a block"
                return self._run(ran)
            case "check":
                return self._check(ran)
            case _:
                raise InfrastructureError(f"no such slot: {self.name}")

    def _sees_only_what_is_readable(
        self, paths: Sequence[str], readable: Sequence[StageCopy]
    ) -> None:
        allowed = [str(self.folder), *(str(copy.path) for copy in readable)]
        ours = [path for path in paths if path.startswith(str(self.rig.folder))]
        hidden = [path for path in ours if not path.startswith(tuple(allowed))]
        assert not hidden, f"{self.name} is told of {hidden}, which it can't read"

    def _build(self) -> StageResult:
        raw = (self.folder / "program.json").read_bytes()
        self.program = json.loads(raw)
        said = self.program.get("build", {})
        if not said.get("missing"):
            target = self.folder / OUTPUT
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(raw)
            target.chmod(0o700)
        return self._result(said, 2e8, stdout=said.get("log", ""))

    def _run(self, ran: Ran) -> StageResult:
        number = self.rig.runs
        self.rig.runs += 1
        if number in self.rig.break_at:
            raise InfrastructureError("isolation: 1 processes of run survived")
        self.program = json.loads(Path(ran.argv[0]).read_bytes()) | self.rig.say_at.get(number, {})
        ran.params = json.loads((self.folder / "params.json").read_bytes())
        self.program |= self.program.get("at", {}).get(str(ran.params.get("n")), {})
        (self.folder / "out" / "said").write_text(json.dumps(self.program.get("check", {})))
        ms = self.program.get("ms", 40)
        ms = ms[str(ran.params["n"])] if isinstance(ms, dict) else ms
        drawn = random.Random(f"{self.rig.seed}/{number}").gauss(0, self.rig.noise)
        return self._result(self.program, ms * 1e6 * (1 + drawn), self.rig.disturb.get(number, {}))

    def _check(self, ran: Ran) -> StageResult:
        said = json.loads(Path(ran.argv[-1], "said").read_text())
        line = json.dumps(said.get("line", {"pass": True, "acc": 0.5}))
        return self._result(said, 5e6, stdout=said.get("stdout", f"looking\n{line}\n"))

    def _result(
        self,
        said: Mapping[str, Any],
        t_ns: float,
        changed: Mapping[str, Any] | None = None,
        stdout: str = "",
    ) -> StageResult:
        self.rig.now_ns += int(t_ns)
        killed: LimitName | None = said.get("killed")
        record: dict[str, Any] = {
            "t_ns": int(t_ns),
            "utime_ns": int(t_ns),
            "stime_ns": 0,
            "nvcsw": 0,
            "nivcsw": 0,
            "minflt": 0,
            "majflt": 0,
            "maxrss_kib": 1024,
            "cpus": [1],
            "started_at": f"2026-01-01T00:00:{self.rig.now_ns / 1e9 % 60:09.6f}Z",
            "suspended_ns": 0,
            "steal_ticks": 0,
        }
        return StageResult(
            killed=killed,
            exit_code=137 if killed else said.get("exit", 0),
            stdout=stdout.encode(),
            stderr=said.get("stderr", "").encode(),
            record=RunRecord(**(record | dict(changed or {}))),
            isolation=self.rig.record_of_isolation(
                self.name, ProofOfZero(survivors=0, rounds=1, kill_ms=0.1, swept=0)
            ),
        )

    def stop(self) -> None:
        """Nothing here runs long."""

    def collect(self, paths: Sequence[str], into: Path, limits: CollectLimits) -> Collected:
        assert limits.entries > 0
        assert not any(into.iterdir())
        said = self.program.get("build", {}) if self.name.startswith("builder") else self.program
        refused = list(said.get("refused", []))
        missing = [path for path in paths if not (self.folder / path).exists()]
        files = []
        if not refused and not missing:
            for path in paths:
                files += self._copy(path.rstrip("/"), into)
        return Collected(files=files, problems=refused, missing=missing)

    def _copy(self, path: str, into: Path) -> list[CollectedFile]:
        source, target = self.folder / path, into / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)
        return [CollectedFile(path=path, mode=0o755, size=0, sha256="0" * 64)]


def is_stages(rig: SimulatedRig) -> Stages:
    """Show the type checker that a simulated rig is a rig."""
    return rig
