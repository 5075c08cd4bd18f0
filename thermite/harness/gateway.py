"""A campaign's MCP gateway, as the harness has it: started, told, heard, started again.

The gateway is a stage in slot `gateway-i`. This side gives each lane a token of its own, says
when an attempt begins and ends, and appends a `tool_called` for each call that it hears of,
bounded whatever the gateway says. A gateway that ends is started again; while it is gone a call
fails, and the campaign goes on. Source: agents and control, A1 and A9.
"""

import contextlib
import hashlib
import secrets
import socket
import sys
import sysconfig
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from thermite.agent.gateway.wire import (
    HEAD,
    Begin,
    Called,
    Caller,
    End,
    Figures,
    FromGateway,
    Note,
    Ready,
    Server,
    SetUp,
    ToGateway,
    frame,
    from_gateway,
    length,
)
from thermite.campaign.state import Assignment
from thermite.errors import InfrastructureError, LedgerError
from thermite.harness.blobs import keep_blob
from thermite.harness.book import Book, Draft
from thermite.harness.grants import addressed, granted
from thermite.harness.unlocking import Unlocking
from thermite.judge.verdict import reason
from thermite.rig.stages import Door, Slot, StageCopy, Stages, listens_inside
from thermite.schema.event import ToolCalled
from thermite.schema.ids import Sha256
from thermite.schema.stage import Limits

INSIDE_PORT: Final = 8422
"""Where a gateway listens in a worker's own network, in which nobody else does (our figure)."""
LIMITS: Final = Limits(rss_mib=4096, disk_mib=4096, processes=512)
"""Of a gateway with its servers: as an attempt's (agents and control, A6)."""
READY_S: Final = 60.0
"""How long an attempt waits for a gateway that starts (our figure)."""
PAUSES_S: Final = (0.5, 1.0, 2.0, 5.0, 10.0)
"""Between a gateway's end and its next start; the last one for good (our figures)."""
MOST_KEPT: Final = 64 << 20
"""Bytes of cut results that are kept of one attempt (agents and control, A6, output)."""
MOST_NAME: Final = 200
"""Characters of a tool's or a server's name in an event (our figure)."""
MOST_COUNT: Final = 1 << 53
PROGRAM: Final = (
    "thermite/__init__.py",
    "thermite/errors.py",
    "thermite/schema",
    "thermite/agent/__init__.py",
    "thermite/agent/gateway",
)
"""What a gateway runs of ours: it gets a copy, since a checkout may hold what it must not read."""
_PACKAGES: Final = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Entrance:
    """How one attempt's worker comes to the gateway."""

    url: str
    token: str
    door: Door


@dataclass
class _Lane:
    """One caller: its token, its attempt if it is in one, and what that has used up.

    listener: inside its worker's own network.
    """

    caller: Caller
    is_open: bool = False
    listener: socket.socket | None = None
    calls: int = 0
    kept: int = 0


class Gateway:
    """The gateway of one campaign, from `running` to its end. Safe to use from its lanes."""

    def __init__(
        self,
        book: Book,
        blobs: Path,
        stages: Stages,
        assignment: Assignment,
        *,
        lanes: int,
        unlocking: Unlocking,
    ) -> None:
        self._book, self._blobs, self._stages = book, blobs, stages
        self._assignment, self._unlocking = assignment.id, unlocking
        self._addressed = addressed(assignment)
        grants = granted(assignment)
        made = [
            _Lane(Caller(token=secrets.token_urlsafe(32), kind="workers", lane=n, grants=grants))
            for n in range(lanes)
        ]
        self._lanes = {one.caller.token: one for one in made}
        self._of_lane = {one.caller.lane: one for one in made}
        self._figures = Figures()
        self._changed = threading.Condition()
        self._line: socket.socket | None = None
        self._to_hang_up: socket.socket | None = None
        self._port: int | None = None
        self._last_port = 0
        self._is_over = False
        self._slot: Slot | None = None

    @contextlib.contextmanager
    def running(self, slot: str, servers: Sequence[Server]) -> Iterator[None]:
        """Keep a gateway in this slot."""
        thread = threading.Thread(target=self._keep, args=(slot, servers), name=slot)
        thread.start()
        try:
            yield
        finally:
            with self._changed:
                self._is_over = True
                self._changed.notify_all()
                if self._slot is not None:
                    self._slot.stop()
                if self._to_hang_up is not None:  # it may start just now
                    with contextlib.suppress(OSError):  # or have ended
                        self._to_hang_up.shutdown(socket.SHUT_RDWR)
            thread.join()

    @contextlib.contextmanager
    def attempt(self, lane: int) -> Iterator[Entrance | None]:
        """Let a lane's worker in for one attempt; None: the gateway could not be started."""
        one = self._of_lane[lane]
        with self._changed:
            self._changed.wait_for(lambda: self._port is not None or self._is_over, READY_S)
            port, one.calls, one.kept = self._port, 0, 0
        if port is None:
            self._note("it does not start: this attempt's worker has no tools")
            yield None
            return
        with contextlib.ExitStack() as opened:
            opened.callback(self._end, one)
            if listens_inside(self._stages.isolation):
                port, fd = INSIDE_PORT, opened.enter_context(self._listener_of(one))
                door = Door(fd, port)
            else:
                self._begin(one, None)
                door = Door(port=port)
            yield Entrance(f"http://127.0.0.1:{port}/mcp", one.caller.token, door)

    def _begin(self, one: _Lane, listener: socket.socket | None) -> None:
        with self._changed:
            one.is_open, one.listener = True, listener
            self._say_begin(one)

    def _say_begin(self, one: _Lane) -> None:
        """Tell the gateway of an attempt that is under way; again, if it is a new one."""
        begin = Begin(
            token=one.caller.token, has_listener=one.listener is not None, calls=one.calls
        )
        self._say(begin, one.listener)

    def _end(self, one: _Lane) -> None:
        with self._changed:
            if one.listener is not None:
                one.listener.close()
            one.is_open, one.listener = False, None
            self._say(End(token=one.caller.token))

    @contextlib.contextmanager
    def _listener_of(self, one: _Lane) -> Iterator[int]:
        """Take the listener that the worker's stage sends, and hand it on to the gateway."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:

            def hand_on() -> None:
                _, fds, _, _ = socket.recv_fds(ours, 16, 1, socket.MSG_CMSG_CLOEXEC)
                if fds:
                    self._begin(one, socket.socket(fileno=fds[0]))

            thread = threading.Thread(target=hand_on, name="listener")
            thread.start()
            try:
                yield theirs.fileno()
            finally:
                ours.shutdown(socket.SHUT_RDWR)
                thread.join()

    def _say(self, message: ToGateway, listener: socket.socket | None = None) -> None:
        """Tell the gateway; one that is gone is told all again when it is there."""
        with contextlib.suppress(OSError):
            if self._line is not None:
                _send(self._line, message, None if listener is None else listener.fileno())

    def _keep(self, name: str, servers: Sequence[Server]) -> None:
        """Run a gateway after the other until the campaign is over."""
        programs = _interpreters()
        for life in range(1 << 30):
            try:
                with self._stages.slot(name) as slot, self._stages.copy_for(name) as code:
                    for part in sources():
                        code.add(_PACKAGES / part, part)
                    said = self._life(slot, code, servers, programs[life % len(programs)])
            except InfrastructureError as error:
                said = str(error)
            except OSError as error:  # of our own files, or the copies of them
                said = f"it can't be started: {error.filename}: {error.strerror}"
            with self._changed:
                self._line = self._to_hang_up = self._port = self._slot = None
                if self._is_over:
                    return
            self._note(said)
            with self._changed:
                pause = PAUSES_S[min(life, len(PAUSES_S) - 1)]
                if self._changed.wait_for(lambda: self._is_over, pause):
                    return

    def _life(self, slot: Slot, code: StageCopy, servers: Sequence[Server], python: str) -> str:
        """Run one gateway to its end; return in words how it ended."""
        with_address = {one.name for one in servers if one.url is not None}
        asked = [one for one in self._addressed if one.name in with_address]
        ours, theirs = socket.socketpair()
        with ours, theirs, self._unlocking.letter(asked, lambda: self._is_over) as letter:
            setup = SetUp(
                servers=[
                    msgspec.structs.replace(one, problem=letter.problems.get(one.name))
                    for one in servers
                ],
                callers=[one.caller for one in self._lanes.values()],
                inside_port=INSIDE_PORT,
                path=self._stages.path_variable,
                port=self._last_port,
                figures=self._figures,
                has_secrets=letter.descriptor is not None,
            )
            _send(ours, setup, letter.descriptor)
            with self._changed:
                self._slot, self._to_hang_up = slot, ours
                if self._is_over:
                    return ""
            hearing = threading.Thread(target=self._hear, args=(ours,), name="gateway")
            hearing.start()
            try:
                result = slot.run(
                    [python, "-P", "-m", "thermite.agent.gateway"],
                    env=self._environment(slot.folder, code.path),
                    limits=LIMITS,
                    join_output=True,
                    readable=[code],
                    door=Door(theirs.fileno()),
                )
            finally:
                theirs.close()
                ours.shutdown(socket.SHUT_RDWR)
                hearing.join()
        tail = result.stdout.decode("utf-8", "replace").strip().splitlines()[-1:]
        why = result.killed or f"exit {result.exit_code}"
        return f"it ended ({why}): {reason.escape(' '.join(tail))[:MOST_NAME]}"

    def _environment(self, folder: Path, code: Path) -> dict[str, str]:
        places = dict.fromkeys((str(code), *map(sysconfig.get_path, ("purelib", "platlib"))))
        return {
            "PATH": self._stages.path_variable,
            "LANG": "C.UTF-8",
            "USER": "gateway",
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "PYTHONPATH": ":".join(places),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def _hear(self, line: socket.socket) -> None:
        """Take what the gateway says until it ends, or says what is no message."""
        try:
            while (message := _read(line)) is not None:
                match message:
                    case Ready(port=port):
                        with self._changed:
                            self._line, self._port, self._last_port = line, port, port
                            for one in self._lanes.values():
                                if one.is_open:
                                    self._say_begin(one)
                            self._changed.notify_all()
                    case Called():
                        self._called(message)
                    case Note(text=text):
                        self._note(text)
        except (ValueError, msgspec.DecodeError) as error:
            self._note(f"it says what is no message ({error}) and is ended")
            with self._changed:
                if self._slot is not None:
                    self._slot.stop()
        except (OSError, LedgerError):
            return  # the stage's end, or the campaign's next append, tells of it

    def _called(self, call: Called) -> None:
        """Append one call, but no more than an attempt may make and one that says so."""
        lane = self._lanes.get(call.token)
        if lane is None or lane.calls > self._figures.calls:
            return
        lane.calls += 1
        told = ToolCalled(
            kind=lane.caller.kind,
            server=_shown(call.server),
            tool=_shown(call.tool),
            ms=_counted(call.ms),
            outcome=call.outcome,
            bytes=_counted(call.size),
            sha256=self._kept(lane, call.whole),
        )
        draft = Draft(told, assignment=self._assignment, lane=lane.caller.lane)
        with self._book.lock:
            if self._book.state.assignments[self._assignment].status != "ended":
                self._book.append(draft)

    def _kept(self, lane: _Lane, whole: bytes | None) -> str | None:
        """Keep a result that was cut; return its digest, also when there is no more room."""
        if whole is None:
            return None
        digest = hashlib.sha256(whole).hexdigest()
        if lane.kept + len(whole) <= MOST_KEPT:
            lane.kept += len(whole)
            try:
                keep_blob(self._blobs, Sha256(digest), whole)
            except OSError as error:
                self._note(f"a cut result can't be kept: {error.strerror}")
        return digest

    def _note(self, text: str) -> None:
        if text:
            shown = reason.escape(text)[:1000]
            sys.stderr.write(f"harness: gateway of {self._assignment[:8]}: {shown}\n")
            sys.stderr.flush()


def sources() -> list[str]:
    """Return the files of ours that a gateway runs, by their paths below the packages.

    What Python keeps of them in `__pycache__` is of no use to a copy, and may be another user's.
    """
    found = [_PACKAGES / part for part in PROGRAM if not (_PACKAGES / part).is_dir()]
    for part in PROGRAM:
        found += sorted((_PACKAGES / part).rglob("*.py"))
    return [str(one.relative_to(_PACKAGES)) for one in found]


def _interpreters() -> list[str]:
    """Return what may run a gateway: ours, or the system's where its user can't reach ours."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return list(dict.fromkeys((sys.executable, f"/usr/local/bin/{version}", f"/usr/bin/{version}")))


def _send(line: socket.socket, message: ToGateway, beside: int | None) -> None:
    raw, fds = frame(message), [] if beside is None else [beside]
    sent = socket.send_fds(line, [raw], fds)
    line.sendall(raw[sent:])


def _read(line: socket.socket) -> FromGateway | None:
    head = line.recv(HEAD.size, socket.MSG_WAITALL)
    if len(head) < HEAD.size:
        return None
    size = length(head)
    raw = line.recv(size, socket.MSG_WAITALL)
    return from_gateway(raw) if len(raw) == size else None


def _shown(name: str) -> str:
    return reason.shorten(reason.escape(name), MOST_NAME)


def _counted(number: int) -> int:
    return min(max(number, 0), MOST_COUNT)
