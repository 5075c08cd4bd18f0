"""What a stage is given: pipes, a working folder, what it may reach, a process limit."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from . import scan
from .child import Order
from .ground import Ground, Slot
from .landlock import NET_ABI
from .vocabulary import Fields, RefusedError

_MOST_LEVELS: Final = 128
_MOST_PORT: Final = 65535
_LONGEST_STRETCH_S: Final = 300.0  # Kit manifest: run.timeout_s by default


@dataclass
class Streams:
    """A stage's output: the write ends for the stage, the rest for its attendant."""

    out: tuple[int, int]
    err: tuple[int, int] | None
    tails: tuple[int, int]

    @classmethod
    def opened(cls, *, joined: bool) -> "Streams":
        """Open the pipes and the memory files for the tails."""
        return cls(
            os.pipe2(os.O_CLOEXEC),
            None if joined else os.pipe2(os.O_CLOEXEC),
            (os.memfd_create("stdout"), os.memfd_create("stderr")),
        )

    @property
    def for_attendant(self) -> list[int]:
        """Pipe and memory file of each stream."""
        fds = [self.out[0], self.tails[0]]
        return fds if self.err is None else [*fds, self.err[0], self.tails[1]]

    def close_tails(self) -> None:
        """Close the memory files."""
        for fd in self.tails:
            os.close(fd)

    def close_pipes(self, end: int) -> None:
        """Close the read ends (0) or the write ends (1)."""
        os.close(self.out[end])
        if self.err is not None:
            os.close(self.err[end])


def check_reach(ground: Ground, slot: Slot, fields: Fields, handed: Sequence[int]) -> None:
    """Refuse what a stage of the judge never gets: a descriptor, or a gateway's port.

    Raises:
        RefusedError: with what can't be had.
    """
    port = fields["gateway_port"]
    if not handed and port is None:
        return
    if len(handed) > 1:
        raise RefusedError(f"a stage is handed one descriptor at most, not {len(handed)}")
    if not (slot.name.startswith("worker-") or slot.network):
        raise RefusedError(f"slot {slot.name} is no agent's: it is handed nothing")
    if port is None:
        return
    if not 0 < port <= _MOST_PORT:
        raise RefusedError(f"{port} is no TCP port")
    if not can_connect(ground):
        raise RefusedError("no stage can be held to one TCP port here: it needs Landlock ABI 4")
    if ground.level.own_view and not slot.network and not handed:
        raise RefusedError("a gateway in the stage's own network needs a descriptor for it")


def can_connect(ground: Ground) -> bool:
    """Return whether stages can be let to one TCP port and to nothing else."""
    return ground.level.own_view or ground.level.landlock >= NET_ABI


@contextlib.contextmanager
def order_of(  # noqa: PLR0917 - all that a stage is given
    ground: Ground,
    slot: Slot,
    fields: Fields,
    streams: Streams,
    cpus: frozenset[int],
    handed: Sequence[int] = (),
) -> Iterator[tuple[Order, list[int]]]:
    """Prepare one stage's order and the descriptors beside it, which are closed at the end.

    Raises:
        RefusedError: a folder or a copy is not the slot's.
    """
    with contextlib.ExitStack() as opened:
        cwd = _working_folder(slot, fields["cwd"])
        opened.callback(os.close, cwd)
        err = streams.out[1] if streams.err is None else streams.err[1]
        has_all = slot.network and fields["gateway_port"] is not None
        reach = [slot.folder_fd] if ground.outfit.confine_files else []
        for name in fields["readable"]:
            path = _copy_path(slot, name)
            if ground.outfit.confine_files:
                reach.append(os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
                opened.callback(os.close, reach[-1])
        order = Order(
            argv=fields["argv"],
            env={**fields["env"], **ground.settings.slot_env.get(slot.name, {})},
            identity=slot.identity,
            processes=_process_limit(
                slot, fields["limits"]["processes"], own_pids=ground.level.own_pids
            ),
            disk_mib=fields["limits"]["disk_mib"],
            cpus=sorted(cpus),
            settle_ms=fields["settle_ms"],
            writable=1,
            realtime_s=_realtime_s(ground, fields),
            folder=(fields["cwd"] or slot.folder or "") if ground.level.own_view else "",
            view_mib=fields["limits"]["rss_mib"],
            shown=_shown(slot, fields) if ground.is_rootless else (),
            is_handed=bool(handed) and not has_all,
            gateway_port=None if slot.network else fields["gateway_port"],
        )
        yield order, [streams.out[1], err, cwd, *reach, *(() if has_all else handed)]


def _shown(slot: Slot, fields: Fields) -> list[str]:
    """Return a stage's work folder and the copies that it reads, or runs in."""
    cwd = f"{fields['cwd'] or ''}/"
    copies = [
        path
        for name, path in slot.copies.items()
        if name in fields["readable"] or cwd.startswith(f"{path}/")
    ]
    return [slot.folder, *copies] if slot.folder else []


def _realtime_s(ground: Ground, fields: Fields) -> float | None:
    """Return how long a timed run may hold its CPU at a stretch, None for a plain stage."""
    if not (ground.settings.realtime_runs and fields["timed"]):
        return None
    return float(fields["limits"]["timeout_s"] or _LONGEST_STRETCH_S)


def _working_folder(slot: Slot, cwd: str | None) -> int:
    """Open the folder to run in: below the slot's work folder or a copy made for it."""
    path = cwd or slot.folder or ""
    fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    tops = [_identity_of(top) for top in (slot.folder, *slot.copies.values()) if top]
    if not _is_below(fd, tops):
        os.close(fd)
        raise RefusedError(f"{path} is in no folder of slot {slot.name}")
    return fd


def _identity_of(path: str) -> tuple[int, int]:
    found = os.lstat(path)
    return found.st_dev, found.st_ino


def _is_below(fd: int, tops: list[tuple[int, int]]) -> bool:
    """Climb from an open folder until one of `tops` is reached, by descriptor."""
    here = os.dup(fd)
    try:
        for _ in range(_MOST_LEVELS):
            found = os.fstat(here)
            if (found.st_dev, found.st_ino) in tops:
                return True
            above = os.open("..", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = above
        return False
    finally:
        os.close(here)


def _copy_path(slot: Slot, name: str) -> str:
    if name not in slot.copies:
        raise RefusedError(f"slot {slot.name} has no stage copy {name!r}")
    return slot.copies[name]


def _process_limit(slot: Slot, asked: int | None, *, own_pids: bool) -> int | None:
    """Return the kernel's limit; without a user of its own, what is not the stage's comes on top.

    That is every thread of the person's own, or in a user namespace (Linux 5.14) its init.
    """
    if asked is None or slot.identity is not None:
        return asked
    return asked + (1 if own_pids else scan.threads_of(slot.uid))
