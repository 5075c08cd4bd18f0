"""The spawner's client: asks for stages, folders and blocks, from any thread.

A refusal of the spawner is an InfrastructureError: the candidate's failures come back as
values. Source: isolation, 4.1 (closed vocabulary); the messages go over `thermite.rig.line`.
"""

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from thermite.errors import InfrastructureError
from thermite.rig.copies import Copy
from thermite.rig.device import cpu
from thermite.rig.line import Line, nothing
from thermite.rig.refusal_words import refusal
from thermite.rig.stages import Door, Slot, StageCopy, Stages
from thermite.schema.stage import (
    Collected,
    CollectedFile,
    CollectLimits,
    Entry,
    Environment,
    IsolationRecord,
    Limits,
    ProofOfZero,
    RunRecord,
    StageResult,
)

_KIND: Final = {"file": b"f", "executable": b"x", "link": b"l", "folder": b"d"}
_PROBE_NAME: Final = "startup"
_PROBE_TIMEOUT_S: Final = 30.0


def connect(fd: int, gone: Callable[[], None] = nothing) -> Stages:
    """Return the rig behind a socket of the spawner's.

    Args:
        gone: called when the other end is closed, before any request fails of it.

    Raises:
        InfrastructureError: the spawner is gone.
    """
    return stages_behind(Line(socket.socket(fileno=fd), gone))


def stages_behind(line: Line) -> Stages:
    """Return what a line leads to, once the spawner has said what it applies.

    Raises:
        InfrastructureError: the spawner is gone.
    """
    return _Rig(line)


class _Rig:
    """`Stages` over a line."""

    def __init__(self, line: Line) -> None:
        self._line = line
        told, _ = line.ask("probe", {})
        self._told = told
        self._isolation = IsolationRecord(
            level=told["level"],
            features=told["features"],
            network=told["network"],
            user="harness",
            uid=os.getuid(),
            gaps=told["gaps"],
        )

    @property
    def isolation(self) -> IsolationRecord:
        """The level that this rig's stages get; the proof is None."""
        return self._isolation

    @property
    def passed_over(self) -> dict[str, str]:
        """The better levels that the spawner could not take, and in words why."""
        return dict(self._told["passed_over"])

    @property
    def path_variable(self) -> str:
        """PATH of every stage."""
        return str(self._told["path"])

    @property
    def slot_names(self) -> list[str]:
        """The slots that this rig has."""
        return list(self._told["slots"])

    @contextlib.contextmanager
    def slot(self, name: str) -> Iterator[Slot]:
        """Lend a slot with an empty work folder; at the end it is swept and removed."""
        told, _ = self._line.ask("folder", {"slot": name, "kind": "work"})
        try:
            yield _LentSlot(self._line, name, Path(told["path"]))
        finally:
            self._line.ask("sweep", {"slot": name, "copy": None})

    @contextlib.contextmanager
    def copy_for(self, slot: str) -> Iterator[StageCopy]:
        """Make an empty stage copy for one slot; it is removed at the end."""
        with self._copy(slot) as copy:
            yield copy

    @contextlib.contextmanager
    def _copy(self, slot: str) -> Iterator[Copy]:
        told, _ = self._line.ask("folder", {"slot": slot, "kind": "copy"})
        try:
            yield Copy(Path(told["path"]))
        finally:
            self._line.ask("sweep", {"slot": slot, "copy": told["name"]})

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """Hold the clock locks and freeze every other slot."""
        self._line.ask(
            "block_begin", {"cpus": self._told["run_cpus"], "cards": self._told["cards"]}
        )
        try:
            yield
        finally:
            self._line.ask("block_end", {})

    def startup_probe_ns(self, slot: Slot, count: int) -> list[int]:
        """Time the driver's program that does nothing, as a timed run, ns each."""
        if not isinstance(slot, _LentSlot):
            raise TypeError("a slot of another rig")
        times = []
        with self._copy(slot.name) as copy:
            copy.write(_PROBE_NAME, cpu.startup_program(), executable=True)
            for _ in range(count):
                result = slot.run(
                    [str(copy.path / _PROBE_NAME)],
                    env={"PATH": self.path_variable},
                    limits=Limits(timeout_s=_PROBE_TIMEOUT_S),
                    timed=True,
                    readable=(copy,),
                )
                if result.exit_code != 0:
                    raise InfrastructureError(
                        f"the start-up probe ended with exit {result.exit_code}"
                    )
                times.append(result.record.t_ns)
        return times


class _LentSlot:
    """`Slot` over a line."""

    def __init__(self, line: Line, name: str, folder: Path) -> None:
        self._line = line
        self.name = name
        self._folder = folder

    @property
    def folder(self) -> Path:
        """The work folder."""
        return self._folder

    def place(self, entries: Iterable[Entry]) -> None:
        """Unpack entries into the work folder as the slot's own user."""
        read, write = os.pipe2(os.O_CLOEXEC)
        writer = _Writer(write, entries)
        writer.start()
        try:
            self._line.ask("place", {"slot": self.name}, (read,))
        finally:
            os.close(read)
            writer.join()
        if writer.error is not None:
            raise writer.error

    def run(  # noqa: PLR0913 - all that a stage is asked for
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
        """Run one stage to its proven end."""
        fields = {
            "stage": self.name,
            "slot": self.name,
            "argv": list(argv),
            "env": dict(env),
            "limits": msgspec.to_builtins(limits),
            "cwd": None if cwd is None else str(cwd),
            "timed": timed,
            "settle_ms": settle_ms,
            "join_output": join_output,
            "readable": [copy.path.name for copy in readable],
            "gateway_port": None if door is None else door.port,
            "log": log is not None,
        }
        own = None if door is None else door.fd
        fds = [fd for fd in (own, log) if fd is not None]
        with contextlib.ExitStack() as granted:
            for copy in readable:
                if isinstance(copy, Copy):
                    granted.enter_context(copy.granted())
            reply, tails = self._line.ask("start", fields, fds)
        return _result(reply, tails, argv, joined=join_output)

    def stop(self) -> None:
        """Ask for the end of what runs here; its own reply comes when it is proven gone."""
        self._line.ask("kill", {"slot": self.name})

    def collect(self, paths: Sequence[str], into: Path, limits: CollectLimits) -> Collected:
        """Copy plain files out of the work folder into an empty folder."""
        target = os.open(into, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fields = {
            "slot": self.name,
            "paths": list(paths),
            "limits": msgspec.to_builtins(limits),
        }
        try:
            _, fds = self._line.ask("collect", fields, (target,))
        finally:
            os.close(target)
        report = json.loads(_read_file(fds[0]))
        return Collected(
            files=msgspec.convert(report["files"], list[CollectedFile]),
            problems=[refusal(*problem) for problem in report["problems"]],
            missing=report["missing"],
            links=report["links"],
        )


class _Writer(threading.Thread):
    """Writes entries into the pipe that the spawner's fork reads."""

    def __init__(self, pipe: int, entries: Iterable[Entry]) -> None:
        super().__init__(name="place", daemon=True)
        self._pipe, self._entries = pipe, entries
        self.error: Exception | None = None

    def run(self) -> None:
        """Write until the entries end, or the other side has had enough."""
        try:
            with os.fdopen(self._pipe, "wb", buffering=1 << 20) as stream:
                for entry in self._entries:
                    head = len(entry.path).to_bytes(4, "little")
                    size = len(entry.data).to_bytes(8, "little")
                    stream.write(_KIND[entry.kind] + head + size + entry.path)
                    stream.write(entry.data)
        except BrokenPipeError:
            return  # the refusal itself says why
        except Exception as error:  # noqa: BLE001 - an error of the entries' own, raised by place
            self.error = error


def _result(
    reply: dict[str, Any], fds: Sequence[int], argv: Sequence[str], *, joined: bool
) -> StageResult:
    stdout, stderr = (_read_file(fd) for fd in fds)
    why = None if reply["exec_error"] is None else os.strerror(reply["exec_error"])
    if why is not None:
        said = f"cannot execute {argv[0]}: {why}\n".encode("utf-8", "surrogateescape")
        stdout, stderr = (stdout + said, stderr) if joined else (stdout, stderr + said)
    isolation = dict(reply["isolation"])
    isolation["proof"] = msgspec.convert(isolation["proof"], ProofOfZero)
    return StageResult(
        killed=reply["killed"],
        exit_code=reply["exit_code"],
        stdout=stdout,
        stderr=stderr,
        record=msgspec.convert(reply["record"], RunRecord),
        isolation=IsolationRecord(**isolation),
        exec_error=why,
    )


def _read_file(fd: int) -> bytes:
    """Read a memory file from its beginning, and close it."""
    with open(fd, "rb") as file:
        file.seek(0)
        return file.read()
