"""Memory that no process maps (row 11): it counts, and where it can't the record names the gap."""

from pathlib import Path

import psutil
import pytest

from tests.attack.candidates import BOUNDED, TRY
from tests.levels import LEVELS, OWN_USER, Rigs
from tests.spawner.conftest import Runner
from thermite.schema.stage import LevelName, StageResult

FILES = {
    "memfd": "made = lambda: os.memfd_create('x')\n",
    "deleted": "def made():\n fd = os.open('/dev/shm/x', os.O_CREAT | os.O_RDWR)\n"
    " os.unlink('/dev/shm/x')\n return fd\n",
}
FILLED = (
    "def filled():\n fd = made()\n for _ in range(20): os.write(fd, bytes(1 << 20))\n return fd\n"
)
MANY = FILLED + "held = [filled() for _ in range(4)]\n"
WAIT = "import time\ntime.sleep(12)\n"
LOOKS_S = (1.5, 12)
"""Time for two looks or three, and for as many on a machine whose looker gets no turn."""
LIMITS = {"rss_mib": 40, "disk_mib": 24}
"""Room for a bare Python, none for twice as much."""
SOON_NS = 6_000_000_000
"""Half of what the program waits for: a busy machine takes its time, and so does the program."""
GAP = "unmapped_memory"


def run(rigs: Rigs, level: LevelName, program: str, **limits: float) -> StageResult:
    rig = rigs.at(level)
    with rig.slot("run-0") as slot:
        return Runner(rig, slot).python(TRY + program, **{**LIMITS, **limits})


def assert_gap(rigs: Rigs, level: LevelName, program: str) -> None:
    for seconds in LOOKS_S:
        result = run(rigs, level, f"{program}import time\ntime.sleep({seconds})\n")
        assert result.killed is None, result.stderr
        if GAP in result.isolation.gaps:
            return
    raise AssertionError(result.stderr)


def assert_ended(result: StageResult) -> None:
    assert result.killed == "memory", result.stderr
    assert result.record.t_ns < SOON_NS
    assert GAP not in result.isolation.gaps


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", FILES)
def test_11_what_no_process_maps_ends_a_stage_and_not_the_next_one(
    rigs: Rigs, kind: str, level: LevelName
) -> None:
    result = run(rigs, level, FILES[kind] + MANY + WAIT)
    if kind == "deleted" and level in BOUNDED:
        assert (result.killed, result.exit_code) == (None, 1)
        assert b"No space left" in result.stderr
    elif kind == "deleted" and level == "none" and result.exit_code == 1:
        assert b"Permission denied" in result.stderr  # Landlock: no /dev/shm there
    else:
        assert_ended(result)
    after = run(rigs, level, "print('fine')")
    assert (after.killed, after.stdout, GAP in after.isolation.gaps) == (None, b"fine\n", False)


@pytest.mark.parametrize("level", LEVELS)
def test_11_what_is_mapped_and_has_a_descriptor_counts_once(rigs: Rigs, level: LevelName) -> None:
    """70 % of the limit in a file, all of it resident, while several looks are taken."""
    program = (
        f"{FILES['memfd']}import mmap, time\nfd = made()\nos.truncate(fd, 140 << 20)\n"
        "both = [mmap.mmap(fd, 0), os.dup(fd)]\n"
        "for _ in range(140): both[0].write(bytes(1 << 20))\n"
        "time.sleep(1)\nprint('fine')"
    )
    result = run(rigs, level, program, rss_mib=200, disk_mib=150)
    assert (result.killed, result.stdout) == (None, b"fine\n"), result.stderr


LEFT_MAPPED = """
import ctypes, mmap
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
for _ in range(2):
    fd = filled()
    libc.mmap(None, ctypes.c_size_t(4096), 1, 1, fd, ctypes.c_long(0))
    os.close(fd)
held = mmap.mmap(-1, 20 << 20)
for part in range(20):
    held.write(bytes(1 << 20))
    held.madvise(mmap.MADV_DONTNEED)
"""


@pytest.mark.parametrize("level", LEVELS)
def test_11_what_is_mapped_and_not_resident_counts_or_the_record_says_so(
    rigs: Rigs, level: LevelName
) -> None:
    """60 MiB: two memfds whose descriptors are closed, and pages that nobody has in his tables."""
    program = FILES["memfd"] + FILLED + LEFT_MAPPED
    if level in OWN_USER:
        assert_ended(run(rigs, level, program + WAIT))
    else:
        assert_gap(rigs, level, program)


@pytest.mark.parametrize("level", LEVELS)
def test_11_files_on_their_way_through_a_socket_are_a_gap_of_that_record(
    rigs: Rigs, level: LevelName
) -> None:
    program = (
        f"{FILES['memfd']}{FILLED}import socket\nends = socket.socketpair()\n"
        "for _ in range(4):\n fd = filled()\n socket.send_fds(ends[0], [b'x'], [fd])\n"
        " os.close(fd)\n"
    )
    assert_gap(rigs, level, program)


@pytest.mark.parametrize("level", LEVELS)
def test_11_one_that_closes_itself_hides_from_its_own_user_alone(
    rigs: Rigs, level: LevelName
) -> None:
    closed = "import ctypes\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
    if level in OWN_USER:
        assert_ended(run(rigs, level, FILES["memfd"] + closed + MANY + WAIT))
    else:
        assert_gap(rigs, level, FILES["memfd"] + closed + MANY)


@pytest.mark.parametrize("level", LEVELS)
def test_11_nobody_has_a_place_that_is_not_looked_at(rigs: Rigs, level: LevelName) -> None:
    program = """
import ctypes
call = ctypes.CDLL(None, use_errno=True).syscall
def failing(number, *given):
    if call(*map(ctypes.c_long, (number, *given))) < 0:
        error = ctypes.get_errno()
        raise OSError(error, "")
tried(lambda: failing(56 if os.uname().machine == "x86_64" else 220, 0x10900, 1, 0, 0, 0))
tried(lambda: failing(436, 1000, 1001, 2))
tried(lambda: failing(436, 1000, 1001, 0))
tried(lambda: failing(447, 0))
"""
    result = run(rigs, level, program)
    assert result.stdout.split() == [b"EPERM", b"EPERM", b"done", b"ENOSYS"], result.stderr


@pytest.mark.parametrize("level", OWN_USER)
def test_11_who_looks_at_stages_has_three_capabilities_at_most_and_a_filter(
    rigs: Rigs, level: LevelName
) -> None:
    run(rigs, level, "")
    lookers = [one for one in map(status, descendants()) if is_looker(int(one["CapEff"], 16))]
    assert lookers
    assert {(one["NoNewPrivs"], one["Seccomp"]) for one in lookers} == {("1", "2")}


def descendants() -> list[int]:
    return [one.pid for one in psutil.Process().children(recursive=True)]


def status(pid: int) -> dict[str, str]:
    rows = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (row.partition(":") for row in rows)}


def is_looker(capabilities: int) -> bool:
    """Whether it may look at others' descriptors, and is not the spawner, which is all of root."""
    ptrace, change_ids = 1 << 19, 1 << 7
    return bool(capabilities & ptrace) and not capabilities & change_ids


FULL = """
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
def test_11_what_waits_in_sockets_and_pipes_is_in_a_gap_and_gone_with_the_stage(
    rigs: Rigs, kind: str, level: LevelName
) -> None:
    result = run(rigs, level, f"KIND = {kind!r}\n{FULL}", rss_mib=32)
    assert "queued_memory" in result.isolation.gaps
    assert (result.killed, result.stdout) == (None, b"True\n"), result.stderr


@pytest.mark.parametrize("level", LEVELS)
def test_11_one_memfd_is_bounded_and_a_stage_is_the_first_to_go(
    rigs: Rigs, level: LevelName
) -> None:
    over = (
        "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "tried(lambda: os.ftruncate(made(), 25 << 20))\n"
        "print(open('/proc/self/oom_score_adj').read())"
    )
    result = run(rigs, level, FILES["memfd"] + over)
    assert result.stdout.split() == [b"EFBIG", b"800"], result.stderr
