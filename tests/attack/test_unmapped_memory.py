"""Memory that no process maps (row 11): what holds of it, and that the gap has its name."""

import pytest

from tests.attack.candidates import BOUNDED, TRY
from tests.levels import LEVELS, Rigs
from tests.spawner.conftest import Runner
from thermite.schema.stage import LevelName

FILES = {
    "memfd": "made = lambda: os.memfd_create('x')\n",
    "deleted": "def made():\n fd = os.open('/dev/shm/x', os.O_CREAT | os.O_RDWR)\n"
    " os.unlink('/dev/shm/x')\n return fd\n",
}
HOLD = (
    "import time\nfor n in range(3):\n fd = made()\n"
    " for _ in range(20): os.write(fd, bytes(1 << 20))\n"
)
LIMITS = {"rss_mib": 32, "disk_mib": 24}
"""Room for a bare Python, none for 60 MiB."""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", FILES)
def test_11_what_no_process_maps_is_not_counted_and_the_record_says_so(
    rigs: Rigs, kind: str, level: LevelName
) -> None:
    rig = rigs.at(level)
    with rig.slot("run-0") as slot:
        result = Runner(rig, slot).python(TRY + FILES[kind] + HOLD + "time.sleep(0.3)", **LIMITS)
    assert "unmapped_memory" in result.isolation.gaps
    assert result.killed is None
    if kind == "deleted" and level in BOUNDED:
        assert b"No space left" in result.stderr
    elif kind == "deleted" and level == "none" and result.exit_code:
        assert b"Permission denied" in result.stderr  # Landlock: no /dev/shm there
    else:
        assert result.exit_code == 0, result.stderr


FILLED = """
import os, socket
def pair():
    a, b = socket.socketpair()
    a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    return a.detach(), b.detach()
held, kept = 0, []
while held < 30 << 20:
    fds = pair() if KIND == "socket" else os.pipe()[::-1]
    os.set_blocking(fds[0], False)
    try:
        while True: held += os.write(fds[0], bytes(1 << 16))
    except BlockingIOError: kept.append(fds)
import time; time.sleep(0.3)
print(held >= 30 << 20)
"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", ["socket", "pipe"])
def test_11_what_waits_in_sockets_and_pipes_is_in_that_gap_and_gone_with_the_stage(
    rigs: Rigs, kind: str, level: LevelName
) -> None:
    rig = rigs.at(level)
    with rig.slot("run-0") as slot:
        result = Runner(rig, slot).python(f"KIND = {kind!r}\n{FILLED}", **LIMITS)
    assert "unmapped_memory" in result.isolation.gaps
    assert (result.killed, result.stdout) == (None, b"True\n"), result.stderr


@pytest.mark.parametrize("level", LEVELS)
def test_11_a_memfd_counts_as_soon_as_it_is_mapped(rigs: Rigs, level: LevelName) -> None:
    rig = rigs.at(level)
    hold = "import mmap\nmaps = [mmap.mmap(made(), 0) for _ in range(3)]\nfor m in maps: m.read()\n"
    sized = "make = made\ndef made():\n fd = make()\n os.truncate(fd, 20 << 20)\n return fd\n"
    with rig.slot("run-0") as slot:
        result = Runner(rig, slot).python(
            TRY + FILES["memfd"] + sized + hold + "import time\ntime.sleep(9)", **LIMITS
        )
    assert result.killed == "memory", result.stderr


@pytest.mark.parametrize("level", LEVELS)
def test_11_one_memfd_is_bounded_and_a_stage_is_the_first_to_go(
    rigs: Rigs, level: LevelName
) -> None:
    rig = rigs.at(level)
    over = (
        "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "tried(lambda: os.ftruncate(made(), 25 << 20))\n"
        "print(open('/proc/self/oom_score_adj').read())"
    )
    with rig.slot("run-0") as slot:
        result = Runner(rig, slot).python(TRY + FILES["memfd"] + over, **LIMITS)
    assert result.stdout.split() == [b"EFBIG", b"800"], result.stderr
