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
