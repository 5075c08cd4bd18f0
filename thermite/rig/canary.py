"""What stages can do here that they must not: tried at the rig's start, and recorded.

A level is worth what its canaries find, not what a version number promises. One small program
in each slot tries to read what is private, to signal the harness, to open sockets, to write
outside and to leave something behind. What could not be tried is `unknown`, which is not
the same as blocked. Source: isolation, 4.2; the result is the event `isolation_probe`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from thermite.errors import InfrastructureError
from thermite.rig.stages import Slot, Stages
from thermite.schema.event import IsolationProbe
from thermite.schema.stage import Entry, Limits

_LIMITS: Final = Limits(timeout_s=60, rss_mib=512, disk_mib=16, processes=64)
_BLOCKED: Final = "blocked"
_GAP_OF: Final = {"read": "files", "write": "files", "signal": "signals", "open": "network"}

_MEANT: Final = frozenset({("gateway", "open")})
"""A gateway has the network: it is there to reach servers (isolation, 4.1, Who may what)."""

_PROGRAM: Final = """
import ctypes, json, os, socket, sys
asked = json.load(open("asked.json"))
found = {}
def attempt(name, act):
    try:
        act()
    except OSError as error:
        found[name] = "blocked"
    else:
        found[name] = "open"
def keyring():
    libc = ctypes.CDLL(None, use_errno=True)
    number = {"x86_64": 248, "aarch64": 217}[os.uname().machine]
    if libc.syscall(number, b"user", b"thermite-canary", b"x", 1, -4) < 0:
        raise OSError(ctypes.get_errno(), "add_key")
for name, path in asked["read"].items():
    attempt("read " + name, lambda: open(path, "rb").read())
for name, path in asked["write"].items():
    def write():
        open(path, "xb").close()
        os.unlink(path)
    attempt("write " + name, write)
def signal_harness():
    # In a pid namespace the harness's number is nobody's: whoever else is in sight counts.
    others = {name for name in os.listdir("/proc") if name.isdigit()} - {"1", str(os.getpid())}
    if not asked["own_pids"]:
        os.kill(asked["harness"], 0)
    elif not others:
        raise ProcessLookupError
attempt("signal harness", signal_harness)
attempt("open tcp socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
attempt("open udp socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
attempt("leave a keyring entry", keyring)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in range(3): os.close(fd)
        import time; time.sleep(600)
    os._exit(0)
print(json.dumps(found))
"""


def probe(
    stages: Stages, private: Mapping[str, Path], beside: Path, harness: int
) -> IsolationProbe:
    """Try every slot and return what was blocked and what was open.

    Args:
        stages: the rig; private: name to a file that no stage may read, and that exists;
            beside: a file that no stage may make; harness: the pid of this process.

    Raises:
        InfrastructureError: a canary's stage can't be run.
    """
    asked = {
        "read": {name: str(path) for name, path in private.items()},
        "write": {"state": str(beside), "the system": "/etc/thermite-canary"},
        "harness": harness,
        "own_pids": "pidns" in stages.isolation.features,
    }
    canaries: dict[str, str] = {}
    for name in stages.slot_names:
        with stages.slot(name) as slot:
            found = _tried(stages, slot, asked)
        canaries |= {f"{name}: {tried}": answer for tried, answer in found.items()}
    told = stages.isolation
    gaps = {*told.gaps, *_gaps(canaries)}
    return IsolationProbe(
        level=told.level,
        features=told.features,
        gaps=sorted(gaps),
        canaries=canaries,
        passed_over=dict(stages.passed_over),
    )


def _tried(stages: Stages, slot: Slot, asked: Mapping[str, object]) -> dict[str, str]:
    """Run the program in one slot and return its findings."""
    slot.place(
        [
            Entry(path=b"canary.py", kind="file", data=_PROGRAM.encode()),
            Entry(path=b"asked.json", kind="file", data=json.dumps(asked).encode()),
        ]
    )
    result = slot.run(
        ["python3", "-I", "-S", "canary.py"],
        env={"PATH": stages.path_variable},
        limits=_LIMITS,
    )
    try:
        found = json.loads(result.stdout)
    except ValueError:
        said = result.stderr.decode("utf-8", "replace").strip()[-200:]
        return {"read anything": f"unknown: {said or 'no answer'}"}
    proof = result.isolation.proof
    if proof is None:
        raise InfrastructureError("a stage ended without a proof that nothing of it is left")
    return {**found, "leave a daemon": "open" if proof.survivors else _BLOCKED}


def _gaps(canaries: Mapping[str, str]) -> set[str]:
    """Return the gaps that open canaries make, whatever the level promises."""
    found = {name.partition(": ")[::2] for name, answer in canaries.items() if answer == "open"}
    words = {(slot.rpartition("-")[0] or slot, tried.split()[0]) for slot, tried in found}
    return {_GAP_OF[word] for noun, word in words if word in _GAP_OF and (noun, word) not in _MEANT}
