"""What is read beside the clock, and the locks that keep two rigs from timing at once.

Whatever can't be read is None, never 0.
"""

import datetime as dt
import fcntl
import os
import resource
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from .linux import suspended_ns
from .loop import Step, Until

_MOST_READ: Final = 1 << 16
"""The lines of some thousand CPUs; /proc/stat has longer ones behind them."""
_TRY_EVERY_S: Final = 0.01
_LONGEST_WAIT_S: Final = 600.0
"""A block of another rig lasts seconds; longer than this something is stuck."""


@dataclass(frozen=True)
class Counters:
    """The machine's counters at one moment; see schema.stage.RunRecord for the units."""

    suspended_ns: int
    psi_cpu_us: int | None
    steal_ticks: int | None
    mhz: int | None
    millidegrees: int | None


def counters(cpus: Collection[int], cpu: int | None) -> Counters:
    """Read the counters.

    cpus: whose stolen time counts; cpu: whose frequency and heat, None to leave both out.
    """
    return Counters(
        suspended_ns=suspended_ns(),
        psi_cpu_us=_found("/proc/pressure/cpu", _psi_total),
        steal_ticks=_found("/proc/stat", partial(_stolen, cpus)),
        mhz=None if cpu is None else _mhz(cpu),
        millidegrees=None if cpu is None else _found("/sys/class/thermal/thermal_zone0/temp", int),
    )


def _psi_total(text: bytes) -> int:
    return int(text.split(b"\n", 1)[0].rsplit(b"total=", 1)[1])


def _stolen(cpus: Collection[int], text: bytes) -> int:
    """Return the ticks that were stolen from some CPUs, of all where one of them is not told of.

    What is taken from other CPUs does not hold up who may not use them.
    """
    lines = dict(line.split(None, 1) for line in text.split(b"\n") if line.startswith(b"cpu"))
    names = [b"cpu%d" % cpu for cpu in cpus]
    told = names if names and lines.keys() >= set(names) else [b"cpu"]
    return sum(int(lines[name].split()[7]) for name in told)


def _mhz(cpu: int) -> int | None:
    path = f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"
    return _found(path, lambda text: int(text) // 1000)


def _found(path: str, read: Callable[[bytes], int]) -> int | None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return read(os.read(fd, _MOST_READ))
        finally:
            os.close(fd)
    except (OSError, ValueError, IndexError):
        return None


def difference(after: int | None, before: int | None) -> int | None:
    """Return how far a counter moved."""
    return None if after is None or before is None else after - before


def wall_time() -> str:
    """Return now as RFC 3339 in UTC, to the millisecond."""
    now = dt.datetime.now(dt.UTC)
    return f"{now:%FT%T}.{now.microsecond // 1000:03d}Z"


def usage_fields(usage: resource.struct_rusage) -> dict[str, int]:
    """Return the reaping wait's rusage under the record's names."""
    return {
        "utime_ns": round(usage.ru_utime * 1e9),
        "stime_ns": round(usage.ru_stime * 1e9),
        "nvcsw": usage.ru_nvcsw,
        "nivcsw": usage.ru_nivcsw,
        "minflt": usage.ru_minflt,
        "majflt": usage.ru_majflt,
        "maxrss_kib": usage.ru_maxrss,
    }


class ClockLocks:
    """Files that are locked for the length of a block: one per CPU and card."""

    def __init__(self, folder: Callable[[], str]) -> None:
        """`folder`: makes the folder where it is gone, and returns it."""
        self._folder = folder
        self._held: list[int] = []

    def take(
        self, cpus: Iterable[int], cards: Iterable[int], is_wanted: Callable[[], bool]
    ) -> Step[str | None]:
        """Take all locks in ascending order; return one that could not be had in time.

        Args:
            is_wanted: whether somebody still waits for them; else none is taken any more.

        Raises:
            OSError: a lock can't be made; some may be held.
        """
        names = [f"clock-cpu{cpu}.lock" for cpu in sorted(set(cpus))]
        names += [f"clock-{card}.lock" for card in sorted(set(cards))]
        give_up = time.monotonic() + _LONGEST_WAIT_S
        for name in names:
            # Opened anew for each try: what is waited for may be cleared away meanwhile.
            while (fd := _locked(path := f"{self._folder()}/{name}")) is None:
                if time.monotonic() > give_up:
                    self.release()
                    return path
                yield Until((), time.monotonic() + _TRY_EVERY_S)
                if not is_wanted():
                    return path
            self._held.append(fd)
        return None

    def release(self) -> None:
        """Release what is held, also where a fork still has the descriptor."""
        while self._held:
            fd = self._held.pop()
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)


def _locked(path: str) -> int | None:
    """Return a lock's file, opened and locked, None where somebody has it."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.stat(path), os.fstat(fd)):
            return fd
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(fd)
    return None
