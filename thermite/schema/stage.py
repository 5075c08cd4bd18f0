"""What a stage is asked to do and what came of it: the language between judge and rig.

A stage is one build, run, check or import process tree in one slot. The harness asks
the spawner for it through `thermite.rig.stage`. Source: the design page on isolation.
"""

from collections.abc import Mapping
from typing import Final, Literal, Self, TypeAlias

import msgspec

from thermite.schema.strict import Real, Strict, Whole

LimitName: TypeAlias = Literal["timeout", "memory", "disk"]
MOST_COUNT: Final = (1 << 53) - 1
"""Largest number in a message to the spawner: what every reader of JSON keeps (RFC 8259, 6)."""
LevelName: TypeAlias = Literal["none", "namespaces", "users", "users+namespaces"]


class Limits(Strict):
    """The limits of one stage; None is no limit.

    timeout_s: seconds; rss_mib and disk_mib: MiB; processes: RLIMIT_NPROC;
    output_kib: how much of the end of each of stdout and stderr is kept, KiB.
    """

    timeout_s: float | None = None
    rss_mib: int | None = None
    disk_mib: int | None = None
    processes: int | None = None
    output_kib: int = 64


class Entry(Strict):
    """One file to place in a slot's work folder.

    path: relative, `/` between components, raw bytes; kind: file, link or folder;
    data: the file's bytes or the link's target.
    """

    path: bytes
    kind: Literal["file", "executable", "link", "folder"]
    data: bytes = b""


class RunRecord(Strict):
    """How one process went, on the spawner's clock (CLOCK_MONOTONIC_RAW).

    t_ns: go byte to the main process's end; utime_ns, stime_ns, context switches and
    faults: rusage of the reaping wait; maxrss_kib: KiB; psi_cpu_us: how far the machine's
    counter moved meanwhile, steal_ticks: that of `cpus`; mhz and millidegrees: before and after;
    affinity_changed: a process of it was seen that had given itself other CPUs than `cpus`.
    What can't be read is None, never 0.
    """

    t_ns: Whole
    utime_ns: Whole
    stime_ns: Whole
    nvcsw: Whole
    nivcsw: Whole
    minflt: Whole
    majflt: Whole
    maxrss_kib: Whole
    cpus: list[Whole]
    started_at: str
    suspended_ns: Whole
    psi_cpu_us: Whole | None = None
    steal_ticks: Whole | None = None
    mhz: tuple[Whole | None, Whole | None] = (None, None)
    millidegrees: tuple[Whole | None, Whole | None] = (None, None)
    affinity_changed: bool = False


class ProofOfZero(Strict):
    """That nothing of the stage is left: survivors above 0 are an infrastructure error."""

    survivors: Whole
    rounds: Whole
    kill_ms: Real
    swept: Whole


class IsolationRecord(Strict):
    """What was applied to one stage, not what was configured (isolation, 4.2).

    features: e.g. nnp, seccomp, landlock:7, pidns; network: the form in which it was
    taken away; user: the document's word for the stage's user, with its uid.
    """

    level: LevelName
    features: list[str]
    network: str
    user: str
    uid: Whole
    gaps: list[str]
    proof: ProofOfZero | None = None


class StageResult(Strict):
    """How a stage ended.

    killed: the limit that ended it, or None; exit_code: as a shell gives it (128 + signal);
    stdout, stderr: the last `output_kib` KiB; both streams in stdout when they were joined;
    exec_error: why the kernel did not execute the program at all, in its words, or None.
    """

    killed: LimitName | None
    exit_code: int
    stdout: bytes
    stderr: bytes
    record: RunRecord
    isolation: IsolationRecord
    exec_error: str | None = None


class CollectedFile(Strict):
    """One plain file that was copied out of a slot; path: as bytes escaped to ASCII text."""

    path: str
    mode: int
    size: int
    sha256: str


class Collected(Strict):
    """What the collector copied, or why it refused.

    problems: one text for each refused name, e.g. `out/a is a symbolic link`;
    missing: declared paths that do not exist. Files are only kept when both are empty.
    links: path to target of the symbolic links, both escaped to ASCII, where these are told.
    """

    files: list[CollectedFile]
    problems: list[str]
    missing: list[str]
    links: dict[str, str] = msgspec.field(default_factory=dict)


class CollectLimits(Strict):
    """Most entries, deepest nesting (levels) and most bytes of a collection.

    links: symbolic links are told and not copied, instead of refused.
    """

    entries: int
    levels: int
    total_bytes: int
    links: bool = False

    @classmethod
    def of(cls, *, entries: int, levels: int, disk_mib: int) -> Self:
        """Return limits with a stage's disk limit, MiB, as the most bytes; any integer may come."""
        total_bytes = min(disk_mib << 20, MOST_COUNT)
        return cls(entries=entries, levels=levels, total_bytes=total_bytes)


Environment: TypeAlias = Mapping[str, str]
