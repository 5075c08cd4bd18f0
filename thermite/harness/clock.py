"""The harness's clocks: what an event is stamped with. Informative; order is the ledger's."""

import secrets
import time
from datetime import UTC, datetime
from functools import cache
from pathlib import Path


def now() -> datetime:
    """Return the wall clock, UTC."""
    return datetime.now(UTC)


def rfc3339(at: datetime) -> str:
    """Return a time as RFC 3339 with microseconds and `Z`."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def stamp() -> str:
    """Return the wall clock as RFC 3339."""
    return rfc3339(now())


def mono_ns() -> int:
    """Return the monotonic clock, ns."""
    return time.monotonic_ns()


def event_id() -> str:
    """Return 128 bits in hex: 48 of milliseconds, so that ids sort by time, and 80 random."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(10)}"


@cache
def boot_id() -> str:
    """Return the kernel's boot id: a monotonic clock means something only beside it."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
