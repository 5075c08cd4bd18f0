"""What the machine did to a run: reasons to drop a block, the same for both arms.

Involuntary switches, the gap of wall and CPU time and pressure are recorded and never
drop anything: on a rig without real-time runs they would drop every block. Nothing is
dropped for its value. Source: the design page on judging, 3.1.
"""

from typing import Final

from thermite.schema.stage import RunRecord

DISTURBANCES: Final = frozenset({"steal", "suspended", "throttled", "foreign_process"})
"""Reasons of a dropped block that lie with the machine (judging, 3.1)."""
TICK_NS: Final = 10_000_000
"""/proc/stat counts in ticks of 10 ms: USER_HZ is 100 on every Linux we run on (proc(5))."""
STEAL_SHARE: Final = 0.02
"""Stolen part of a run's wall time from which it is disturbed (judging, 3.1)."""
SUSPENDED_NS: Final = 1_000_000
"""Two clocks are read one after the other: below 1 ms apart no machine was suspended."""


def flags(record: RunRecord) -> list[str]:
    """Return what disturbed the run: `steal`, `suspended`; empty when nothing did."""
    found = []
    ticks = record.steal_ticks or 0  # None: not readable, so nothing can be said
    if ticks >= 1 and ticks * TICK_NS >= STEAL_SHARE * record.t_ns:
        found.append("steal")
    if record.suspended_ns >= SUSPENDED_NS:
        found.append("suspended")
    return found
