"""Whether a level does what it says, tried with a stage of each slot before it is taken.

A level that can be set up may still not hold: root of somebody's container has capabilities
and no second user, a kernel has a call and forbids it. So a real stage process goes the real
way of each slot, executes a shell and tries what no stage may: read a private file in the
rig's folder, write there, signal the spawner. The harness's own canaries try more, once the
level is there, and record it. Source: isolation, 4.2.
"""

import contextlib
import os
import select
import signal
import socket
from collections.abc import Iterator
from typing import Final

from .ahead import Ahead
from .child import FAILED, GO, READY, Order
from .ground import Ground, Level, Slot
from .settings import DEFAULT_STAGE_PATH

_LONGEST_S: Final = 20.0
_SHELL: Final = "/bin/sh"
_COMMON: Final = "/usr"
"""A folder that the machine's view and every other have in common."""
_COULD: Final = {1: "read a private file of the rig", 2: "write there", 4: "signal the spawner"}
_DONE: Final = 64
_ENOUGH: Final = 8
"""Processes that a canary may have where they are counted by namespace (Linux 5.14)."""
_WRITTEN: Final = "-written"
_TEXT: Final = """r=64
cat "$SECRET" && r=$((r | 1))
(: > "$BESIDE") && r=$((r | 2))
[ "$SPAWNER" ] && kill -0 "$SPAWNER" && r=$((r | 4))
exit $r"""
"""Its exit code is the sum of what it could do and of 64, which says that it came to its end."""


def why_not_proven(ground: Ground) -> str | None:
    """Return in words what a ground's stages could do that they must not, None when nothing."""
    with _secret(ground.settings.state) as secret:
        for slot in ground.slots.values():
            if slot.quarantined is not None:
                continue  # what a dead spawner's stage left there would have a say
            problem = _tried(ground, slot, secret)
            if problem is not None:
                return f"a stage of {slot.word} {problem}"
    return None


@contextlib.contextmanager
def _secret(state: str) -> Iterator[str]:
    """Make a private file in the rig's folder, as the ledger and the keys are."""
    path = f"{state}/canary-{os.urandom(8).hex()}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        yield path
    finally:
        os.unlink(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{path}{_WRITTEN}")


def _tried(ground: Ground, slot: Slot, secret: str) -> str | None:
    one = ground.take_stage_process(slot)
    order = _order(ground.level, slot, secret)
    with _common_folder() as (cwd, null):
        try:
            # One that died before its order shows as a stage that does not become ready.
            with contextlib.suppress(OSError):
                socket.send_fds(one.line, [order.to_bytes()], [null, null, cwd])
            return _followed(one)
        finally:
            _end(ground, one)


@contextlib.contextmanager
def _common_folder() -> Iterator[tuple[int, int]]:
    """Open the folder that the canary runs in, and where its output goes."""
    cwd = os.open(_COMMON, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    null = os.open("/dev/null", os.O_WRONLY | os.O_CLOEXEC)
    try:
        yield cwd, null
    finally:
        os.close(cwd)
        os.close(null)


def _order(level: Level, slot: Slot, secret: str) -> Order:
    # In a pid namespace the spawner's number is nobody's, or one of the stage's own.
    spawner = "" if "pidns" in level.features else str(os.getpid())
    return Order(
        argv=[_SHELL, "-c", _TEXT],
        env={
            "PATH": DEFAULT_STAGE_PATH,
            "SECRET": secret,
            "BESIDE": f"{secret}{_WRITTEN}",
            "SPAWNER": spawner,
        },
        identity=slot.identity,
        processes=_ENOUGH if level.own_pids else None,
        disk_mib=1,
        cpus=sorted(os.sched_getaffinity(0)),
        settle_ms=0,
        folder=_COMMON if level.own_view else "",
        view_mib=1,
    )


def _followed(one: Ahead) -> str | None:
    """Let the canary go and return in words what it could do, None when nothing."""
    said = _word(one)
    if not said.startswith(READY):
        why = said.removeprefix(FAILED).decode("utf-8", "replace") or "it ended at once"
        return f"can't be set up: {why}"
    one.line.send(GO)
    if not select.select([one.pidfd], [], [], _LONGEST_S)[0]:
        return f"was not done after {_LONGEST_S:.0f} s"
    found = os.waitid(os.P_PIDFD, one.pidfd, os.WEXITED | os.WNOWAIT)
    code = -1 if found is None else found.si_status
    if found is None or found.si_code != os.CLD_EXITED or not code & _DONE:
        return f"could not run {_SHELL} to its end: {code}"
    could = [words for bit, words in _COULD.items() if code & bit]
    return f"could {' and '.join(could)}" if could else None


def _word(one: Ahead) -> bytes:
    line = one.line.fileno()
    if line not in select.select([line, one.pidfd], [], [], _LONGEST_S)[0]:
        return b""
    try:
        return one.line.recv(1024)
    except OSError:
        return b""


def _end(ground: Ground, one: Ahead) -> None:
    for each in (one, one.init):  # an init's end waits for the other's burial
        if each is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(each.pidfd, signal.SIGKILL)
            os.waitpid(each.pid, 0)
            ground.children.discard(each.pid)
            each.close()
