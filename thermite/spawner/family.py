"""The two children, supervisor and harness: started, started again, and stopped.

Source: the system page, Processes. A child that dies is started again after 1, 2, 4 … 30 s;
five deaths in five minutes: everything stops and it is said why. One that says that it would only
refuse again (by its exit code) is not started again at all. When the harness dies,
every slot is ended, proven empty and swept before the next one starts. Argv and environment
stand in the settings and never change.
"""

import fcntl
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from . import linux
from .child import Identity, take_identity
from .ground import Ground
from .listener import Answer, Listener
from .loop import Step, Task, Until
from .settings import Program
from .vocabulary import HARNESS, SUPERVISOR, Fields

_LONGEST_PAUSE_S: Final = 30.0
_MOST_DEATHS: Final = 5
_DEATHS_WITHIN_S: Final = 300.0
REFUSED: Final = 78
"""Exit code of a child that can't go on before somebody has mended what it says: sysexits(3),
EX_CONFIG, and the same as `thermite.schema.child_exit`."""
_PATIENCE_S: Final = 10.0
"""From SIGTERM to SIGKILL."""
_SPAWNER_FD: Final = 3
_PEER_FD: Final = 4
_SAFE_FD: Final = 20


class Family:
    """Keeps both children alive until it is told to stop."""

    def __init__(
        self, ground: Ground, answers: Mapping[str, Answer], clear: Callable[[], Step[None]]
    ) -> None:
        self._ground, self._answers, self._clear = ground, answers, clear
        # Both ends stay open here for life, so that a restart of one is not the other's end.
        self._peers = dict(
            zip(
                ("supervisor", "harness"),
                socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET),
                strict=True,
            )
        )
        self._tasks: dict[str, Task] = {}
        self._pids: dict[str, int] = {}
        self._stop_at: float | None = None
        self.failure: str | None = None

    def _stopping(self) -> bool:
        return self._stop_at is not None

    def begin(self) -> None:
        """Start both children."""
        for name in ("supervisor", "harness"):
            self._tasks[name] = self._ground.loop.start(self._keep(name))

    def stop(self) -> None:
        """Ask both to end; who is still there after ten seconds is killed."""
        if self._stop_at is None:
            self._stop_at = time.monotonic() + _PATIENCE_S
            for name, task in self._tasks.items():
                self._signal(name, signal.SIGTERM)
                self._ground.loop.wake(task)

    def restart(self, _fields: Fields, _fds: list[int]) -> tuple[dict[str, object], list[int]]:
        """End the harness, for the supervisor; its next one starts by the rules."""
        self._signal("harness", signal.SIGTERM)
        return {}, []

    def _signal(self, name: str, number: int) -> None:
        pid = self._pids.get(name)
        if pid is not None:
            os.kill(pid, number)  # not reaped yet, so the number is still its own

    def _keep(self, name: str) -> Step[None]:
        deaths: list[float] = []
        while not self._stopping():
            status = yield from self._life(name)
            if name == "harness":
                yield from self._clear()
            if self._stopping():
                break
            now, code = time.monotonic(), os.waitstatus_to_exitcode(status)
            deaths = [one for one in deaths if now - one < _DEATHS_WITHIN_S] + [now]
            said = f"{name} ended with {code}"
            if code == REFUSED:
                self._give_up(
                    f"the {name} refuses, as it says above, and would again: this rig stops;"
                    " mend that and serve it again"
                )
                break
            if len(deaths) >= _MOST_DEATHS:
                self._give_up(f"{said}, the fifth time in five minutes: this rig stops")
                break
            pause = min(_LONGEST_PAUSE_S, 2.0 ** (len(deaths) - 1))
            sys.stderr.write(f"thermite spawner: {said}; starting it again in {pause:.0f} s\n")
            yield from self._pause(pause)
        del self._tasks[name]
        if not self._tasks:
            self._ground.loop.stopping = True

    def _give_up(self, why: str) -> None:
        """End the rig, unless it ends already, for the first reason that there was."""
        self.failure = self.failure or why
        self.stop()

    def _pause(self, seconds: float) -> Step[None]:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self._stopping():
            yield Until((), end)

    def _life(self, name: str) -> Step[int]:
        """Start a child and wait for its death; return its wait status."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = self._fork(name, theirs.fileno())
        theirs.close()
        words = HARNESS if name == "harness" else SUPERVISOR
        answers = self._answers if name == "harness" else {"restart": self.restart}
        listener = Listener(self._ground, ours.detach(), words, answers)
        self._ground.loop.start(listener.listen())
        self._pids[name] = pid
        self._ground.children.add(pid)
        pidfd = os.pidfd_open(pid)
        while pidfd not in (yield Until((pidfd,), self._stop_at)):
            if self._stop_at is not None and time.monotonic() >= self._stop_at:
                self._signal(name, signal.SIGKILL)
                yield Until((pidfd,))
                break
        _, status = os.waitpid(pid, 0)
        os.close(pidfd)
        del self._pids[name]
        self._ground.children.discard(pid)
        return status

    def _fork(self, name: str, line: int) -> int:
        level = self._ground.level
        identity, other = (
            (level.harness, level.supervisor)
            if name == "harness"
            else (level.supervisor, level.harness)
        )
        program = self._ground.settings.children[name]
        env = {
            **program.env,
            "THERMITE_STATE": self._ground.settings.state,
            "THERMITE_FD_SPAWNER": str(_SPAWNER_FD),
            "THERMITE_FD_PEER": str(_PEER_FD),
            "THERMITE_PEER_UID": str(os.getuid() if other is None else other.uid),
        }
        rules = self._ground.outfit.programs["none"] if name == "harness" else None
        fds = (line, self._peers[name].fileno())
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                _become(program, env, fds, identity, rules, parent)
            finally:
                os._exit(126)
        return pid


def _become(  # noqa: PLR0917 - all that a child is made of
    program: Program,
    env: Mapping[str, str],
    fds: tuple[int, int],
    identity: Identity | None,
    rules: bytes | None,
    parent: int,
) -> NoReturn:
    try:
        os.setsid()
        for caught in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, signal.SIGTERM):
            signal.signal(caught, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        null = os.open("/dev/null", os.O_RDONLY)
        moved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _SAFE_FD) for fd in (null, *fds)]
        for number, fd in zip((0, _SPAWNER_FD, _PEER_FD), moved, strict=True):
            os.dup2(fd, number, inheritable=True)
        linux.close_from(_PEER_FD + 1)
        os.chdir("/")
        if identity is None:
            linux.keep_capabilities(0)
        else:
            take_identity(identity)
        linux.forbid_new_privileges()
        linux.die_with_parent(signal.SIGKILL, parent)
        if rules is not None:
            linux.install_filter(rules)
        os.execve(program.argv[0], list(program.argv), dict(env))
    except OSError as error:
        text = f"thermite spawner: {program.argv[0]}: {error.strerror}\n"
        os.write(2, text.encode("utf-8", "surrogateescape"))
        os._exit(126)
