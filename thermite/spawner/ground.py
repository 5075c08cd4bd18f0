"""What every request stands on: the slots, who they are, and what runs in them now."""

import contextlib
import os
import resource
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, get_args

from . import linux, scan
from .ahead import Ahead, Init, fork_ahead
from .child import Identity, Outfit, prepare_for_all, wait_for_order
from .deadly import wait_to_kill
from .fork import Fork, Garb
from .landlock import SYSTEM, spared
from .loop import Gate, Loop, Step, Task, Until
from .nursery import PLAIN, Asked, Duty, Kind, Nursery
from .own_view import View
from .seccomp import Network, program
from .settings import Settings
from .shared import SharedFolders
from .uids import Leases
from .vocabulary import RefusedError
from .watching import Attendant

BLOCK_SLOTS: Final = ("run", "check", "interactor")
"""Slots that a block's own job uses; every other one stands still meanwhile (isolation, 4.1)."""
_LOST: Final = (ConnectionError, TimeoutError)
_MOST_BURIED: Final = 1000
"""Orphans at a time: some 5 ms."""
_QUIET_S: Final = 0.003
"""A killer, which few stages need, is only made where nothing has been asked for so long."""


@dataclass
class Live:
    """A stage that runs now; deadline: seconds of time.monotonic, moved on by a freeze.

    init: process 1 of the stage's own pid namespace, until it has been reaped; network: a
    descriptor of its network, where another may have that afterwards;
    ended: wait status and rusage of the main process, once it has been reaped; cpus: what it
    had given itself at its end.
    """

    main: int
    pidfd: int
    task: Task
    deadline: float | None = None
    to_kill: bool = False
    init: Init | None = None
    network: int | None = None
    is_frozen: bool = False
    frozen_s: float = 0.0
    ended: tuple[int, resource.struct_rusage] | None = None
    cpus: set[int] | None = None


@dataclass
class Slot:
    """One user with one work folder; identity None is level none.

    unswept: what its last stage left outside its folder could not be removed yet.
    """

    name: str
    network: bool
    identity: Identity | None
    folder: str | None = None
    folder_fd: int = -1
    live: Live | None = None
    busy: bool = False
    quarantined: str | None = None
    unswept: bool = False
    attendant: Attendant | None = None
    copies: dict[str, str] = field(default_factory=dict)

    @property
    def word(self) -> str:
        """The documents' word for the slot's user: builder, run, check, import, worker-i."""
        noun, _, number = self.name.rpartition("-")
        plain = noun and number.isdigit() and (noun != "worker") and number == "0"
        return noun if plain else self.name

    @property
    def uid(self) -> int:
        """The uid that its stages have."""
        return os.getuid() if self.identity is None else self.identity.uid

    @property
    def in_block(self) -> bool:
        """Whether a block's own job uses it."""
        return self.name.rpartition("-")[0] in BLOCK_SLOTS or self.name in BLOCK_SLOTS


@dataclass
class Level:
    """What this spawner applies, found out at its start.

    watch_capability: to read a stage's files, look_capability: to see what its processes hold;
    sees_absence: the kernel says in one call whether a slot's user has any process, and no
    process of a stage can change its ids; own_view: stages have namespaces of their own,
    own_pids: one of process ids too;
    passed_over: better levels that were asked for with `auto`, and why each can't be had.
    """

    name: str
    features: list[str]
    network: str
    gaps: list[str]
    landlock: int
    reaper: int | None = None
    harness: Identity | None = None
    supervisor: Identity | None = None
    watch_capability: int = 0
    look_capability: int = 0
    leases: Leases | None = None
    is_realtime: bool = False
    sees_absence: bool = False
    own_view: bool = False
    own_pids: bool = False
    passed_over: Mapping[str, str] = field(default_factory=dict)


WATCHING: Final = 4
"""SCHED_FIFO of attendants beside real-time runs, below the spawner's 5 (isolation, 4.1)."""


class Ground:
    """The spawner's whole state."""

    def __init__(self, settings: Settings, level: Level, slots: dict[str, Slot]) -> None:
        self.settings = settings
        self.level = level
        self.slots = slots
        self.stage_root = settings.stage_root
        self.owns_stage_root = False
        self.loop = Loop()
        self.killing = Gate(self.loop)
        self.timing = Gate(self.loop)
        self.is_timing = False
        self.children: set[int] = set()
        self.shared = SharedFolders()
        self.late_killer: Ahead | None = None
        self.all_cpus = frozenset(os.sched_getaffinity(0))
        self.run_cpus = _run_cpus(settings, self.all_cpus)
        self.quiet_cpus = self.all_cpus - self.run_cpus or self.all_cpus
        self.outfit = Outfit(
            programs=_filters(level),
            landlock=level.landlock,
            confine_files=level.name in {"none", "namespaces"} and level.landlock > 0,
            system_paths=_system_paths(settings),
            cpus=self.all_cpus,
        )
        self._nursery: Nursery | None = None
        of_slots = {
            self._kind(slot, to_gateway=to_gateway)
            for slot in slots.values()
            for to_gateway in (False, True)
        }
        self._kinds = [PLAIN, *sorted(of_slots - {PLAIN}, key=repr)]
        self._stage_ahead: Ahead | Asked | None = None
        self._killer_ahead: Ahead | None = None

    def slot(self, name: str) -> Slot:
        """Return a slot that can be used.

        Raises:
            RefusedError: there is none of this name, or it is quarantined.
        """
        slot = self.slots.get(name)
        if slot is None:
            raise RefusedError(f"there is no slot {name!r}; this rig has {', '.join(self.slots)}")
        if slot.quarantined is not None:
            raise RefusedError(
                f"slot {name} is quarantined until the next start: {slot.quarantined}"
            )
        return slot

    def garb(self, slot: Slot | None) -> Garb:
        """Return what a fork wears: the slot's user, or the harness's with leave to read."""
        if slot is not None:
            return Garb(slot.identity, cpus=self.quiet_cpus)
        watching = WATCHING if self.settings.realtime_runs else 0
        capability = self.level.watch_capability
        return Garb(self.level.harness, capability, self.quiet_cpus, realtime=watching)

    def lives(self) -> Iterator[tuple[Slot, Live]]:
        """Return the slots in which a stage runs, with the stage."""
        for slot in self.slots.values():
            if slot.live is not None:
                yield slot, slot.live

    def take_stage_process(self, slot: Slot, *, to_gateway: bool = False) -> Ahead:
        """Return a process that waits for a stage's order: the one made ahead, or a new one.

        Args:
            slot: whose stage it will be; to_gateway: it may connect to a gateway.

        Raises:
            OSError: none can be made.
        """
        kind = self._kind(slot, to_gateway=to_gateway)
        if kind != PLAIN:
            return self._settled(self._ask(kind))
        one, self._stage_ahead = self._stage_ahead, None
        try:
            found = self._settled(one or self._ask())
        except OSError:  # somebody ended or stopped the nursery, or this one; or none could be made
            return self._settled(self._ask())
        if not found.has_ended:
            return found
        self.children -= found.bury()
        return self._settled(self._ask())

    def hand_on(self, live: Live, *, is_proven: bool) -> None:
        """Keep the network of a stage that has ended for another's, where nothing of it is left."""
        if live.network is None:
            return
        if is_proven and self._nursery is not None:
            self._nursery.networks.keep(live.network)
        else:
            os.close(live.network)

    def _kind(self, slot: Slot, *, to_gateway: bool) -> Kind:
        network: Network = "open" if slot.network else "gateway" if to_gateway else "none"
        return Kind(network, self.settings.slot_reach.get(slot.name, ()))

    def settle_ahead(self) -> None:
        """Get to know the processes of the stage made ahead."""
        if self._stage_ahead is not None:
            try:
                self._stage_ahead = self._settled(self._stage_ahead)
            except OSError:  # it is made when it is needed, or that fails then
                self._stage_ahead = None

    def _settled(self, one: Ahead | Asked) -> Ahead:
        if isinstance(one, Ahead):
            return one
        if self._nursery is None:
            raise BrokenPipeError("the nursery is gone")
        try:
            found = self._nursery.born(one, by_helper=self.level.own_pids)
        except _LOST:
            self.end_nursery()
            raise
        self.children.add(found.pid)
        if found.init is not None:
            self.children.add(found.init.pid)
        return found

    def _ask(self, kind: Kind = PLAIN) -> Asked:
        """Ask the nursery for a stage's process; a nursery that is gone is replaced, once."""
        # Elsewhere and at once: it would else wait until this process sleeps.
        elsewhere = self.all_cpus - {linux.current_cpu()}
        number = self._kinds.index(kind)
        may_join = kind.network == "none"
        if self._nursery is not None:
            try:
                return self._nursery.ask(number, cpus=elsewhere, may_join=may_join)
            except OSError:
                self.end_nursery()
        prepare = partial(prepare_for_all, is_rootless=self.is_rootless)
        self._nursery = Nursery([self._duty(one) for one in self._kinds], prepare)
        self.children.add(self._nursery.pid)
        return self._nursery.ask(number, cpus=elsewhere)

    def _duty(self, kind: Kind) -> Duty:
        private = private_paths(self.settings)
        return partial(
            wait_for_order,
            self.outfit,
            network=kind.network,
            further=[path for one in kind.reach for path in spared(one, private)],
            view=self._view(kind.reach) if self.level.own_view else None,
        )

    def end_nursery(self) -> None:
        """End what makes the processes of stages; it is made again when one is asked for."""
        if self._nursery is not None:
            self.children.discard(self._nursery.pid)
            self._nursery.close()
            self._nursery = None

    def take_killer(self) -> Ahead:
        """Return a killer that waits for its order."""
        one, self._killer_ahead = self._killer_ahead, None
        return one or self._fork_killer()

    @property
    def killer_pid(self) -> int | None:
        """The last killer, which has a slot's effective uid until it is gone."""
        return None if self.late_killer is None else self.late_killer.pid

    def prepare_stage(self, last: Slot | None = None) -> None:
        """Make the next stage's process, unless a stage still runs: its end asks again.

        Args:
            last: a slot whose stage's main process has ended: its time is stamped.
        """
        runs = any(slot is not last for slot, _ in self.lives())
        if self._stage_ahead is None and not runs:
            with contextlib.suppress(OSError):  # it is made when it is needed, or that fails then
                self._stage_ahead = self._ask()

    def make_ahead(self) -> Step[None]:
        """Make what the next stage will need: its process at once, its killer in quiet.

        Never beside a stage: its end asks again.
        """
        self.prepare_stage()
        while self._killer_ahead is None and self.level.reaper is not None:
            yield Until((), time.monotonic() + _QUIET_S)
            if any(self.lives()):
                return
            if not any(slot.busy for slot in self.slots.values()):
                try:
                    self._killer_ahead = self._fork_killer()
                except OSError:
                    return

    def _view(self, shown: tuple[str, ...]) -> View:
        hidden = (self.settings.state, *self.settings.private)
        return View(self.stage_root, is_rootless=self.is_rootless, hidden=hidden, shown=shown)

    @property
    def is_rootless(self) -> bool:
        """Whether stages have machines of their own that a plain user makes."""
        return self.level.name == "namespaces"

    def _fork_killer(self) -> Ahead:
        one = fork_ahead(partial(wait_to_kill, self.level.reaper or 0))
        self.children.add(one.pid)
        return one

    def adopt(self, one: Fork) -> Fork:
        """Remember a fork as ours, so that it is not taken for an orphan."""
        self.children.add(one.pid)
        return one

    def reap(self) -> bool:
        """Bury orphans that have ended; a child of ours is left to whoever waits for it.

        One that is not buried still counts as a process of its user: a stage that found its
        limit used up by the last one's could not start.

        Returns:
            Whether there were so many that some may be left: a stage on many CPUs may make them
            as fast as they are buried, and its own limit of time must be looked at meanwhile.
        """
        for _ in range(_MOST_BURIED):
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return False
            if found is None:
                return False
            if found.si_pid in self.children:
                break
            os.waitpid(found.si_pid, 0)
        else:
            return True
        for pid in scan.children_now() - self.children:  # one of ours has ended before them
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        return False


def _run_cpus(settings: Settings, all_cpus: frozenset[int]) -> frozenset[int]:
    """Return the CPUs of timed runs: as set, else the last one when there are several."""
    if settings.run_cpus is not None:
        if not set(settings.run_cpus) <= all_cpus:
            raise RefusedError(
                f"the run CPUs {sorted(settings.run_cpus)} are not all among"
                f" {sorted(all_cpus)}, which this process may use: set THERMITE_RUN_CPUS"
            )
        return frozenset(settings.run_cpus)
    return frozenset((max(all_cpus),)) if len(all_cpus) > 1 else all_cpus


def _system_paths(settings: Settings) -> list[str]:
    """Return what a confined stage may read of the system: nothing that is private."""
    private = private_paths(settings)
    roots = {os.path.realpath(root) for root in SYSTEM if os.path.isdir(root)}
    return sorted({path for root in roots for path in spared(root, private)})


def private_paths(settings: Settings) -> list[str]:
    """Return what no stage may read, wherever it lies."""
    return [os.path.realpath(path) for path in (settings.state, *settings.private)]


def _filters(level: Level) -> dict[Network, bytes | None]:
    networks: tuple[Network, ...] = get_args(Network)
    if "seccomp" not in level.features:
        return dict.fromkeys(networks)
    sysv = level.name == "users"  # only there are they seen, counted and swept
    return {one: program(linux.MACHINE, network=one, sysv=sysv) for one in networks}
