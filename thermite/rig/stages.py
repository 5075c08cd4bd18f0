"""What the judge and the lanes may ask of a rig. Source: the design page on isolation, 4.1."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from thermite.schema.stage import (
    Collected,
    CollectLimits,
    Entry,
    Environment,
    IsolationRecord,
    Limits,
    StageResult,
)

HANDED_FD: Final = 4
"""Where a stage finds the descriptor that is handed to it; as the spawner's own."""
NET_ABI: Final = 4
"""Landlock's first version that can hold a process to one TCP port (landlock(7))."""


def listens_inside(isolation: IsolationRecord) -> bool:
    """Return whether a stage has a network of its own, so that its gateway listens in there."""
    return "netns" in isolation.features


def reaches_gateway(isolation: IsolationRecord) -> bool:
    """Return whether a stage without network can be let to a gateway, and to nothing else."""
    versions = [f.removeprefix("landlock:") for f in isolation.features if "landlock:" in f]
    return listens_inside(isolation) or any(int(v) >= NET_ABI for v in versions)


class Door(NamedTuple):
    """How an agent's stage and a gateway meet.

    port: of loopback, that the stage may connect to; where it has a network of its own, a
    listener there is sent over the socket `fd`. Without a port, `fd` is the stage's own to keep,
    as its descriptor HANDED_FD.
    """

    fd: int | None = None
    port: int | None = None


class StageCopy(Protocol):
    """A folder that the harness owns and one slot's stages may read, only while granted."""

    @property
    def path(self) -> Path:
        """Absolute path; its length is the same for every copy."""

    def add(self, source: Path, name: str, *, links: bool = False) -> None:
        """Copy a file or folder in as `name`: folders 0555, files 0444, or 0555 if executable.

        links: symbolic links inside the folder are kept; the caller knows where they lead.
        """


class Slot(Protocol):
    """One leased user with one work folder; one stage at a time."""

    @property
    def folder(self) -> Path:
        """The work folder, absolute; owned by the slot's user, mode 0700."""

    def place(self, entries: Iterable[Entry]) -> None:
        """Unpack entries into the work folder as the slot's own user."""

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
        """Run one stage to its end, prove that nothing of it is left, and return how it went.

        env is the whole environment; cwd defaults to the work folder; timed pins the process
        to the run CPUs after a busy loop of settle_ms there; readable copies are open to the
        slot's group only meanwhile; join_output puts stderr into stdout; door: an agent's only;
        log: a descriptor of `output_log`, for a joined output that is to outlive a kill.

        Raises:
            InfrastructureError: the stage can't be started, or something of it survived.
        """

    def stop(self) -> None:
        """Ask, from another thread, for the end of what runs in it; nothing when nothing does."""

    def collect(self, paths: Sequence[str], into: Path, limits: CollectLimits) -> Collected:
        """Copy plain files below `paths` (relative to the work folder) into an empty folder."""


class Stages(Protocol):
    """The spawner, as the harness uses it. Safe to call from several threads."""

    @property
    def isolation(self) -> IsolationRecord:
        """The level that this rig's stages get (the proof is None)."""

    @property
    def passed_over(self) -> Mapping[str, str]:
        """The better levels that the spawner could not take, and in words why."""

    @property
    def slot_names(self) -> Sequence[str]:
        """The slots that this rig has."""

    @property
    def path_variable(self) -> str:
        """PATH of every stage (`stage_path` of rig.toml)."""

    def slot(self, name: str) -> AbstractContextManager[Slot]:
        """Lend slot `builder-0`, `run-0`, `check`, `import`, `worker-0`: empty first, swept after.

        Raises:
            InfrastructureError: no such slot, or it is quarantined.
        """

    def copy_for(self, slot: str) -> AbstractContextManager[StageCopy]:
        """Make an empty stage copy for one slot; it is removed at the end."""

    def block(self) -> AbstractContextManager[None]:
        """Hold the clock locks and freeze every other slot, for the length of one block."""

    def startup_probe_ns(self, slot: Slot, count: int) -> list[int]:
        """Time a program that does nothing, `count` times in this slot, ns each."""
