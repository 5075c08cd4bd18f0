"""Starting a spawner: its command line, its settings, and one that serves a single client.

The spawner runs by folder path under an interpreter that imports nothing of ours; all it is
told stands in one JSON object on a descriptor. `thermite rig serve` becomes a spawner with
`become`; tests and `thermite judge` use `spawner`, which is its only client.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn

from thermite.errors import InfrastructureError
from thermite.rig.line import Line
from thermite.rig.stage import stages_behind
from thermite.rig.stages import Stages

FOLDER: Final = Path(__file__).resolve().parent.parent / "spawner"
SLOTS: Final = ("builder-0", "run-0", "check", "import", "worker-0")
"""The slots of a rig with one judge and one lane."""
_PACKAGES: Final = FOLDER.parent.parent
_LONGEST_END_S: Final = 40.0
_CHILD_ENV: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}


@dataclass(frozen=True)
class SpawnerConfig:
    """What a spawner is told; None leaves the spawner's own default.

    state: the rig's folder; stage_root: where stage folders lie, STATE/stages by default;
    fallback_root: where a fresh stage root may be made when stages can't reach stage_root,
    None where that is an error; slots: name to whether it has the network; private:
    further folders that no stage may read; isolation: a level, or auto; slot_env: variables
    of a slot's stages beside those that each is given; slot_reach: folders that a slot's stages
    may read beside the system's; cards: the numbers, in the order of PCI addresses, of those that
    a block holds the clock of; tries_children: find out, too, as whom supervisor and harness of a
    rig that serves could run.
    """

    state: Path
    stage_root: Path | None = None
    fallback_root: Path | None = Path("/var/tmp")  # noqa: S108 - a fresh 0711 folder is made there
    slots: Mapping[str, bool] = field(default_factory=lambda: dict.fromkeys(SLOTS, False))
    isolation: str | None = None
    private: Sequence[Path] = ()
    uid_range: tuple[int, int] | None = None
    run_dir: Path | None = None
    run_cpus: Sequence[int] | None = None
    slot_env: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    slot_reach: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    cards: Sequence[int] = ()
    stage_path: str | None = None
    realtime_runs: bool = False
    tries_children: bool = False

    def settings(self) -> dict[str, Any]:
        """Return the JSON object; THERMITE_ISOLATION, _UID_RANGE and _RUN_CPUS fill gaps.

        Raises:
            InfrastructureError: one of the variables has a value that can't be read.
        """
        root = self.stage_root or self.state / "stages"
        told: dict[str, Any] = {
            "state": str(self.state.resolve()),
            "stage_root": str(root.resolve()),
            "slots": dict(self.slots),
            "private": [str(path.resolve()) for path in self.private],
            "isolation": self.isolation or os.environ.get("THERMITE_ISOLATION") or "auto",
            "fallback_root": None if self.fallback_root is None else str(self.fallback_root),
            "uid_range": self.uid_range or numbers_of("THERMITE_UID_RANGE", "-"),
            "run_cpus": self.run_cpus or numbers_of("THERMITE_RUN_CPUS", ","),
            "slot_env": {slot: dict(one) for slot, one in self.slot_env.items()},
            "slot_reach": {
                slot: [str(path.resolve()) for path in one] for slot, one in self.slot_reach.items()
            },
            "cards": list(self.cards),
            "run_dir": None if self.run_dir is None else str(self.run_dir),
            "stage_path": self.stage_path,
            "realtime_runs": self.realtime_runs,
            "tried": children({}) if self.tries_children else {},
        }
        optional = ("uid_range", "run_cpus", "run_dir", "stage_path")
        return {k: v for k, v in told.items() if v is not None or k not in optional}


def numbers_of(variable: str, between: str) -> list[int] | None:
    """Return the whole numbers in an environment variable, None when it is not set.

    Raises:
        InfrastructureError: it has something else in it.
    """
    text = os.environ.get(variable, "")
    if not text:
        return None
    try:
        return [int(word) for word in text.split(between)]
    except ValueError:
        raise InfrastructureError(
            f"{variable} is {text!r}: give whole numbers with {between!r} between them"
        ) from None


def command(fd: int) -> list[str]:
    """Return the argv of a spawner whose settings are on descriptor `fd`."""
    return [sys.executable, "-I", "-S", "-B", "-X", "utf8", str(FOLDER), str(fd)]


def children(variables: Mapping[str, str]) -> dict[str, dict[str, object]]:
    """Return the programs of a rig that serves, with their environment."""
    env = {**_CHILD_ENV, **variables, "PYTHONPATH": str(_PACKAGES)}
    return {
        "supervisor": {"argv": [sys.executable, "-P", "-m", "supervisor"], "env": env},
        "harness": {"argv": [sys.executable, "-P", "-m", "thermite.harness"], "env": env},
    }


def become(config: SpawnerConfig, variables: Mapping[str, str]) -> NoReturn:
    """Replace this process with a spawner that starts and restarts supervisor and harness.

    Args:
        config: what the spawner is told; variables: what both children find in their
            environment beside what the spawner gives them.

    Raises:
        InfrastructureError: the settings can't be used.
    """
    fd = _settings_file(config.settings() | {"children": children(variables)})
    os.set_inheritable(fd, True)  # noqa: FBT003 - positional only
    argv = command(fd)
    os.execve(argv[0], argv, os.environ)  # noqa: S606 - our own program, no shell


@contextlib.contextmanager
def spawner(
    state: Path,
    *,
    within: Sequence[str] = (),
    interruptible: bool = False,
    **config: Any,  # noqa: ANN401 - SpawnerConfig's fields
) -> Iterator[Stages]:
    """Run a spawner for this process alone, and end it with everything in it.

    Args:
        state: the rig's folder; made if it is missing.
        within: a command that runs the spawner's, e.g. in a pid namespace of its own.
        interruptible: in the main thread, SIGINT becomes a KeyboardInterrupt where the spawner
            is asked for something, and nowhere else; a second one that finds the first still
            unheard is raised at once.
        config: further fields of `SpawnerConfig`.

    Raises:
        InfrastructureError: it does not start, or the isolation can't be had.
    """
    state.mkdir(mode=0o711, parents=True, exist_ok=True)
    settings = SpawnerConfig(state, **config).settings()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fd = _settings_file(settings | {"client_fd": theirs.fileno()})
    process = subprocess.Popen(
        [*within, *command(fd)],
        pass_fds=(fd, theirs.fileno()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,  # a terminal's SIGINT is for its client, which ends it in order
    )
    os.close(fd)
    theirs.close()
    line = Line(ours)
    with _interrupts_heard_by(line) if interruptible else contextlib.nullcontext():
        try:
            yield _connected(line, process)
        finally:
            line.close()
            _ended(process)


@contextlib.contextmanager
def _interrupts_heard_by(line: Line) -> Iterator[None]:
    def heard(*_: object) -> None:
        if not line.interrupt():
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, heard)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    line.hear_interrupt()


def _connected(line: Line, process: "subprocess.Popen[bytes]") -> Stages:
    try:
        return stages_behind(line)
    except InfrastructureError as error:
        line.close()
        said = _ended(process)
        raise InfrastructureError(said or str(error)) from None


def _ended(process: "subprocess.Popen[bytes]") -> str:
    """Wait for the spawner's end and return the last line that it said."""
    try:
        _, said = process.communicate(timeout=_LONGEST_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        _, said = process.communicate()
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("thermite spawner: ") if lines else ""


def _settings_file(settings: Mapping[str, Any]) -> int:
    fd = os.memfd_create("settings", os.MFD_CLOEXEC)
    with open(fd, "wb", closefd=False) as file:
        file.write(json.dumps(settings).encode())
    os.lseek(fd, 0, os.SEEK_SET)
    return fd
