"""Canaries: what a stage can reach on this machine, found out by trying.

At each start of the harness a stage in each kind of slot tries to read what is private, to
write beside it, to signal the harness and to open sockets. What comes back is recorded; a
contract that asks for `protected` is accepted only when every read was blocked. What could
not be tried is `unknown`, which is not the same as blocked. Source: isolation, 4.2.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from thermite.rig.stages import Stages
from thermite.schema.event import IsolationProbe
from thermite.schema.stage import Limits

LIMITS: Final = Limits(timeout_s=30, rss_mib=256, disk_mib=16, processes=64)
"""A canary takes milliseconds; the rest is room for a busy machine (our figures)."""
SCRIPT: Final = r"""
say() { printf '%s\n' "$1"; }
try() { if "$@" >/dev/null 2>&1; then say open; else say blocked; fi; }
touch_it() { : > "$1"; }
pid=$1; beside=$2; shift 2
try kill -0 "$pid"
try touch_it "$beside"
if command -v python3 >/dev/null 2>&1; then
  for kind in SOCK_STREAM SOCK_DGRAM; do
    try python3 -I -S -c "import socket; socket.socket(socket.AF_INET, socket.$kind)"
  done
else say unknown; say unknown; fi
for file; do try head -c 1 "$file"; done
"""
TRIED: Final = ("signal harness", "write state", "open tcp socket", "open udp socket")
KINDS: Final = ("builder-0", "run-0", "worker-0")
"""Slots whose stages run what a candidate or an agent wrote."""


def probe(
    stages: Stages, private: Mapping[str, Path], beside: Path, harness: int
) -> IsolationProbe:
    """Return what is recorded at a start: the level as applied, and what canaries found.

    Args:
        stages: the rig; private: name to a file that no stage may read, and that exists;
            beside: a file that no stage may make; harness: the pid of this process.

    Raises:
        InfrastructureError: a canary's stage can't be run.
    """
    record = stages.isolation
    canaries: dict[str, str] = {}
    for kind in KINDS:
        found = _tried(stages, kind, private, beside, harness)
        canaries |= {f"{kind}: {name}": answer for name, answer in found.items()}
    return IsolationProbe(
        level=record.level, features=record.features, gaps=record.gaps, canaries=canaries
    )


def _tried(
    stages: Stages, kind: str, private: Mapping[str, Path], beside: Path, harness: int
) -> dict[str, str]:
    names = [*TRIED, *(f"read {name}" for name in private)]
    with stages.slot(kind) as slot:
        argv = ["/bin/sh", "-c", SCRIPT, "sh", str(harness), str(beside)]
        result = slot.run(
            [*argv, *(str(path) for path in private.values())],
            env={"PATH": stages.path_variable, "LANG": "C.UTF-8"},
            limits=LIMITS,
        )
    answers = result.stdout.decode("ascii", "replace").split()
    answers += ["unknown"] * (len(names) - len(answers))
    return dict(zip(names, answers, strict=False))
