"""The demo's folder and its rig: made fresh, started, stopped, and never anybody else's."""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psutil

from thermite.cli.exits import CommandEnds, Exit

NEEDED: Final = (0, 5, 6, 7, 23)
"""CAP_CHOWN, KILL, SETGID, SETUID and SYS_NICE (linux/capability.h): what real-time runs need."""
MARK: Final = ".thermite-demo.json"
"""Tells a demo's folder from anybody else's; holds the rig's pid and its start time."""
START_S: Final = 60.0
"""How long a rig may take to say that it is there (our figure; 2 s on a quiet machine)."""
STOP_S: Final = 30.0
"""How long a rig may take to end (our figure)."""


def can_be_realtime() -> bool:
    """Return whether timed runs may be SCHED_FIFO here, as `realtime_runs` needs it."""
    if os.geteuid() != 0 or os.environ.get("THERMITE_ISOLATION", "auto") == "none":
        return False
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    effective = int(re.findall(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)[0], 16)
    has_all = all(effective >> bit & 1 for bit in NEEDED)
    period = Path("/proc/sys/kernel/sched_rt_runtime_us").read_text(encoding="ascii")
    if not (has_all and len(os.sched_getaffinity(0)) > 1 and int(period) > 0):
        return False
    return _kernel_allows_realtime()


def _kernel_allows_realtime() -> bool:
    """Return whether the kernel lets this thread be SCHED_FIFO: it becomes so for a moment.

    The capability is not enough where control groups share out real time: a group without
    a share of its own gets EPERM.
    """
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        return False
    os.sched_setscheduler(0, *before)
    return True


def fresh_folder(folder: Path) -> Path:
    """Return an empty demo folder; an earlier demo that no longer runs is replaced.

    Raises:
        CommandEnds: the folder is somebody else's, or its demo is still running.
    """
    folder = folder.absolute()
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise CommandEnds(Exit.WRONG_STATE, f"{folder} is no folder: name another one")
    if folder.exists() and any(folder.iterdir()):
        _refuse_if_not_ours(folder)
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MARK).write_text("{}\n", encoding="utf-8")
    return folder


def _refuse_if_not_ours(folder: Path) -> None:
    mark = folder / MARK
    if not mark.is_file():
        raise CommandEnds(
            Exit.WRONG_STATE, f"{folder} is not empty and no earlier demo: name another folder"
        )
    try:
        told = json.loads(mark.read_text(encoding="utf-8"))
        running = _runs(int(told["pid"]), float(told["started"]))
    except (ValueError, KeyError, TypeError):
        running = False  # it never came so far as to start a rig
    if running:
        raise CommandEnds(
            Exit.WRONG_STATE,
            f"the demo in {folder} is still running (process {told['pid']}):"
            " end it, or name another folder",
        )


def _runs(pid: int, started: float) -> bool:
    """Return whether that very process lives; pids are used again, start times tell."""
    try:
        return abs(psutil.Process(pid).create_time() - started) < 1.0
    except psutil.NoSuchProcess:
        return False


class DemoRig:
    """A rig as a child process, for the length of a `with`."""

    def __init__(self, home: Path, argv: list[str], state: Path) -> None:
        self.home, self.argv, self.state = home, argv, state
        self.log = home / "rig.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                self.argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        started = psutil.Process(self._process.pid).create_time()
        told = {"pid": self._process.pid, "started": started}
        (self.home / MARK).write_text(json.dumps(told) + "\n", encoding="utf-8")
        self._wait_until_there()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """End the rig: it closes its ledger with a last checkpoint."""
        process = self._process
        if process is None:
            return
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        self._process = None

    def check(self) -> None:
        """Raise if the rig has ended.

        Raises:
            CommandEnds: with the end of what it said.
        """
        if self._process is None or self._process.poll() is not None:
            raise CommandEnds(Exit.INFRASTRUCTURE, f"the rig has ended: {self._said()}")

    def _wait_until_there(self) -> None:
        deadline = time.monotonic() + START_S
        while not (self.state / "outbox" / "rig.json").exists():
            if self._process is None or self._process.poll() is not None:
                raise CommandEnds(Exit.INFRASTRUCTURE, f"the rig did not start: {self._said()}")
            if time.monotonic() > deadline:
                self.stop()
                raise CommandEnds(Exit.TIMEOUT, f"the rig did not start in {START_S:.0f} s")
            time.sleep(0.05)

    def _said(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")[-2000:].strip()
