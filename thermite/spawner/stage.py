"""One stage from request to reply: set up, stamped, watched, ended, proven gone."""

import contextlib
import os
import signal
import socket
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from . import clock
from .attendant import Watch
from .child import FAILED, GO, NOT_EXECUTED, OUR_EXEC_ERRORS, READY
from .ending import Proof, end_slot, kill_main
from .ground import Ground, Live, Slot
from .holding import hold_leases
from .leavings import sweep_leavings
from .linux import raw_ns
from .loop import Step, Until
from .output_log import check_log
from .preparing import Streams, check_reach, order_of
from .vocabulary import Fields, RefusedError
from .watching import UNMAPPED, Attendant, looking

Reply = tuple[dict[str, Any], list[int]]
"""A reply's fields, and the descriptors that go with it."""

_SETUP_S: Final = 30.0
_KIB: Final = 1024
_MOST_KEPT: Final = 1 << 20
_MILLISECOND_NS: Final = 1_000_000


@dataclass
class Outcome:
    """What the clock and the waits said."""

    killed: str | None = None
    t0: int = 0
    t1: int = 0
    exit_code: int = 0
    usage: Any = None
    exec_error: int | None = None
    started_at: str = ""
    is_widened: bool = False
    is_unseen: bool = False
    before: clock.Counters | None = None
    after: clock.Counters | None = None


def run_stage(ground: Ground, fields: Fields, handed: Sequence[int] = ()) -> Step[Reply]:
    """Run one stage to its proven end.

    Args:
        handed: at most one descriptor: the stage's own, or, beside a gateway's port, where a
            listener in the stage's own network goes; and behind it the file of a log.

    Raises:
        RefusedError: it can't be started, or something of it survived.
    """
    slot = ground.slot(fields["slot"])
    if slot.folder is None:
        raise RefusedError(f"slot {slot.name} has no work folder yet")
    if slot.busy:
        raise RefusedError(f"slot {slot.name} runs a stage already")
    if not fields["argv"]:
        raise RefusedError("a stage needs a program")
    own, logs = _apart(fields, handed)
    if fields["log"]:
        check_log(fields, logs)
    check_reach(ground, slot, fields, own)
    hold_leases(ground, slot)
    slot.busy = True
    try:
        if not slot.in_block:  # a stage of another job begins after the block that runs now
            yield from ground.timing.passed()
        if slot.unswept:
            yield from sweep_leavings(ground, slot)
        with contextlib.ExitStack() as opened:
            return (yield from Course(ground, slot, fields, opened, handed).run())
    finally:
        slot.busy = False


def _apart(fields: Fields, handed: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
    """Return what is handed to the stage, and the file of its log."""
    return (handed[:-1], handed[-1:]) if fields["log"] else (handed, ())


class Course:
    """The way of one stage."""

    def __init__(
        self,
        ground: Ground,
        slot: Slot,
        fields: Fields,
        opened: contextlib.ExitStack,
        handed: Sequence[int],
    ) -> None:
        self._handed, self._logs = _apart(fields, handed)
        self._ground, self._slot, self._fields, self._opened = ground, slot, fields, opened
        self._limits = fields["limits"]
        self._cpus = ground.run_cpus if fields["timed"] else ground.all_cpus
        self._streams = Streams.opened(joined=fields["join_output"])
        opened.callback(self._streams.close_tails)
        self._outcome = Outcome()

    def run(self) -> Step[Reply]:
        """Order the stage and its attendant, let it go, and end it whatever happens."""
        live, line = self._ordered()
        try:
            attendant = self._attendant(live)
        except OSError:
            yield from self._end(live)
            raise
        finally:
            self._streams.close_pipes(0)
        try:
            yield from self._begin(live, line)
            yield from self._watched(live, attendant)
        finally:
            proof = yield from self._ended(live, attendant)
        self._read_exec_error(line)
        if self._outcome.killed is None:
            self._outcome.killed = attendant.over  # crossed in the stage's last moment
        self._outcome.is_widened |= attendant.is_widened
        self._outcome.is_unseen = attendant.is_unseen
        return self._reply(proof)

    def _ordered(self) -> tuple[Live, socket.socket]:
        """Give a waiting process this stage's order and enter it as the slot's."""
        given = (self._ground, self._slot, self._fields, self._streams, self._cpus)
        to_gateway = self._fields["gateway_port"] is not None
        try:
            with order_of(*given, self._handed) as (order, fds):
                one = self._ground.take_stage_process(self._slot, to_gateway=to_gateway)
                task, net = self._ground.loop.current, one.network
                live = Live(one.pid, one.pidfd, task, init=one.init, network=net)
                self._slot.live = live
                self._opened.callback(one.line.close)
                # One that died while it waited shows as a stage that does not become ready.
                with contextlib.suppress(OSError):
                    socket.send_fds(one.line, [order.to_bytes()], fds)
        except (RefusedError, OSError):
            self._streams.close_pipes(0)
            raise
        finally:
            self._streams.close_pipes(1)
        return live, one.line

    def _attendant(self, live: Live) -> Attendant:
        slot, limits = self._slot, self._limits
        watch = Watch(
            uid=None if slot.identity is None else slot.identity.uid,
            main=live.main,
            spawner=os.getpid(),
            init=None if live.init is None else live.init.pid,
            rss_mib=limits["rss_mib"],
            disk_mib=limits["disk_mib"],
            keep_bytes=min(limits["output_kib"] * _KIB, _MOST_KEPT),
            cpus=sorted(self._cpus) if self._fields["timed"] else None,
            has_log=bool(self._logs),
        )
        given = [slot.folder_fd, *self._streams.for_attendant, *self._logs]
        try:
            return self._begun(watch, given)
        except ConnectionError:  # somebody ended it while it had nothing to do
            if slot.attendant is not None:
                self._ground.children.discard(slot.attendant.fork.pid)
                slot.attendant.discard()
                slot.attendant = None
            return self._begun(watch, given)

    def _begun(self, watch: Watch, given: list[int]) -> Attendant:
        slot = self._slot
        if slot.attendant is None:
            look = self._ground.level.look_capability
            slot.attendant = Attendant(looking(self._ground.garb(None), look))
            self._ground.adopt(slot.attendant.fork)
        if slot.identity is None:  # a stage of the same user may have moved both elsewhere
            for pid in (0, slot.attendant.fork.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(pid, self._ground.quiet_cpus)
        slot.attendant.begin(watch, given)
        return slot.attendant

    def _begin(self, live: Live, line: socket.socket) -> Step[None]:
        """Wait until the child is ready, then stamp and let it go.

        Raises:
            RefusedError: it could not be set up, or was ended before.
        """
        deadline = time.monotonic() + _SETUP_S + self._fields["settle_ms"] / 1000
        while line.fileno() not in (yield Until((line.fileno(), live.pidfd), deadline)):
            if live.to_kill:
                raise RefusedError("the stage was ended before it began")
            if time.monotonic() >= deadline:
                raise RefusedError(f"the stage's process was not ready after {_SETUP_S:.0f} s")
        said = _word(line)
        if not said.startswith(READY):
            text = said.removeprefix(FAILED).decode("utf-8", "replace") or "it ended"
            raise RefusedError(f"the stage could not be set up: {text}")
        self._outcome.before = self._counters()
        self._outcome.started_at = clock.wall_time()
        if self._limits["timeout_s"] is not None:
            live.deadline = time.monotonic() + self._limits["timeout_s"]
        self._outcome.t0 = raw_ns()
        line.send(GO)

    def _counters(self) -> clock.Counters:
        return clock.counters(self._cpus, min(self._cpus) if self._fields["timed"] else None)

    def _watched(self, live: Live, attendant: Attendant) -> Step[None]:
        """Wait for the main process's end or for the first limit."""
        while not self._outcome.t1:
            heard = () if attendant.is_gone else (attendant.fd,)
            ready = yield Until((live.pidfd, *heard), live.deadline)
            stamp = self._ground.loop.stamp
            if live.pidfd in ready:
                self._outcome.t1 = stamp
            elif attendant.fd in ready:
                attendant.hear()
                if attendant.over is not None:
                    self._outcome.killed, self._outcome.t1 = attendant.over, stamp
            elif live.to_kill:
                self._outcome.t1 = stamp
            elif live.deadline is not None and time.monotonic() >= live.deadline:
                self._outcome.killed, self._outcome.t1 = "timeout", stamp
        self._outcome.after = self._counters()

    def _ended(self, live: Live, attendant: Attendant) -> Step[Proof]:
        """End the stage, remove what it left, and hear the attendant's last word.

        The next stage's process is made after the answer, while its reader thinks about it.

        Raises:
            RefusedError: one of the three failed.
        """
        proof = yield from self._end(live)
        attendant.wind_up()
        try:  # beside the attendant's last work
            swept = yield from sweep_leavings(self._ground, self._slot)
        finally:
            problem = yield from attendant.finish()
            if problem is not None:
                self._slot.attendant = None
                self._ground.children.discard(attendant.fork.pid)
            self._ground.loop.start(self._ground.make_ahead())
        if problem is not None:
            raise RefusedError(f"the attendant failed: {problem}")
        return replace(proof, swept=swept)

    def _end(self, live: Live) -> Step[Proof]:
        """End the stage in the order of isolation 4.1; main is reaped for its rusage.

        Where it has ended by itself, the next one's process is made meanwhile; not at level none,
        where what is not known yet would be taken for an orphan of this one.
        """
        kill_main(live)
        is_told_apart = self._slot.identity is not None or self._ground.level.own_pids
        if is_told_apart and self._outcome.killed is None:
            self._ground.prepare_stage(self._slot)
        try:
            proof = yield from end_slot(self._ground, self._slot)
        finally:
            os.close(live.pidfd)
            self._slot.live = None
            self._ground.hand_on(live, is_proven=self._slot.quarantined is None)
        if self._fields["timed"] and live.cpus is not None:
            self._outcome.is_widened = live.cpus != set(self._cpus)
        if live.ended is not None:
            status, self._outcome.usage = live.ended
            code = os.waitstatus_to_exitcode(status)
            self._outcome.exit_code = 128 - code if code < 0 else code
            if code == -signal.SIGXFSZ and self._outcome.killed is None:
                self._outcome.killed = "disk"
        return proof

    def _read_exec_error(self, line: socket.socket) -> None:
        said = _word(line)
        if said.startswith(NOT_EXECUTED):
            self._outcome.exec_error = int(said[len(NOT_EXECUTED) :])

    def _reply(self, proof: Proof) -> Reply:
        outcome, slot = self._outcome, self._slot
        if slot.quarantined is not None:
            raise RefusedError(slot.quarantined)
        if outcome.usage is None:
            raise RefusedError("the stage's main process could not be reaped")
        if outcome.exec_error in OUR_EXEC_ERRORS:
            words = os.strerror(outcome.exec_error or 0)
            raise RefusedError(f"the program could not be started: {words}")
        fields = {
            "killed": outcome.killed,
            "exit_code": outcome.exit_code,
            "exec_error": outcome.exec_error,
            "record": self._record(),
            "isolation": self._isolation() | {"proof": asdict(proof)},
        }
        return fields, [os.dup(fd) for fd in self._streams.tails]

    def _isolation(self) -> dict[str, Any]:
        told = isolation(self._ground, self._slot)
        if self._fields["gateway_port"] is not None and not self._slot.network:
            told["network"] = f"{told['network']}+gateway"
        if self._outcome.is_unseen and UNMAPPED not in told["gaps"]:
            told["gaps"] = [*told["gaps"], UNMAPPED]
        return told

    def _record(self) -> dict[str, Any]:
        outcome = self._outcome
        before, after = outcome.before, outcome.after
        if before is None or after is None:
            raise RuntimeError("a stage ended normally without its counters")
        return {
            "t_ns": outcome.t1 - outcome.t0,
            **clock.usage_fields(outcome.usage),
            "cpus": sorted(self._cpus),
            "started_at": outcome.started_at,
            "suspended_ns": _suspended(after.suspended_ns - before.suspended_ns),
            "psi_cpu_us": clock.difference(after.psi_cpu_us, before.psi_cpu_us),
            "steal_ticks": clock.difference(after.steal_ticks, before.steal_ticks),
            "mhz": [before.mhz, after.mhz],
            "millidegrees": [before.millidegrees, after.millidegrees],
            "affinity_changed": outcome.is_widened,
        }


def _word(line: socket.socket) -> bytes:
    """Return what the stage's process has said, nothing when it can say no more."""
    try:
        return line.recv(1024)
    except (BlockingIOError, ConnectionResetError):
        return b""


def _suspended(moved_ns: int) -> int:
    """Two clocks can't be read at one moment: less than a millisecond is none."""
    return moved_ns if moved_ns >= _MILLISECOND_NS else 0


def isolation(ground: Ground, slot: Slot) -> dict[str, Any]:
    """Return what is applied to the stages of one slot."""
    level = ground.level
    return {
        "level": level.name,
        "features": level.features,
        "network": "open" if slot.network else level.network,
        "user": slot.word,
        "uid": slot.uid,
        "gaps": level.gaps,
    }
