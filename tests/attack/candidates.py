"""The rows of the ranked table of attacks as hostile programs, each with what must come of it.

A program prints what it found, or tries to get over a limit, or leaves something behind. Row
numbers are the table's; `B…` and `P…` are rows of the list of known faults of other judges.
"""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.levels import LEVELS, OWN_USER
from thermite.schema.stage import LevelName

OWN_PIDS = tuple(level for level in LEVELS if "namespaces" in level)
"""Where a stage's processes see each other alone: beside them is only the one that ends them."""
BOUNDED = tuple(level for level in LEVELS if "namespaces" in level)
COUNTED = tuple(level for level in OWN_USER if level not in BOUNDED)
"""Where shared memory is the machine's and is counted, not a filesystem of the stage's own."""


@dataclass(frozen=True)
class Attack:
    """One hostile program; said: its standard output, None: whatever it says."""

    name: str
    program: str
    killed: str | None = None
    code: int | None = 0
    said: str | None = None
    levels: tuple[LevelName, ...] = LEVELS
    limits: Mapping[str, float] = field(default_factory=dict)


def ended_by(number: signal.Signals) -> int:
    """Return a shell's exit code for a death by signal."""
    return 128 + number


TRY = """
import os, sys, socket, errno
def tried(act):
    try:
        act()
    except OSError as error:
        print(errno.errorcode[error.errno])
    else:
        print("done")
"""
KILL_LOOP = "import os,signal\nwhile 1:\n try: os.kill(-1, signal.{})\n except OSError: pass"
BOMB = "import os\nwhile 1:\n try: os.fork()\n except OSError: pass"
COMETS = """
import os, time
for _ in range(8):
    try: pid = os.fork()
    except OSError: break  # the first ones may have come to the limit already
    if pid == 0:
        while 1:
            try: pid = os.fork()
            except OSError: continue
            if pid: os._exit(0)
time.sleep(9)
"""
DEMOTERS = """
import os, itertools
parent = os.getpid()
def demote():
    for pid in itertools.cycle(range(2, 400)):
        for call in (lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
                     lambda: os.setpriority(os.PRIO_PROCESS, pid, 19)):
            try: call()
            except OSError: pass
for i in range(62):
    if os.fork() == 0:
        if i < 2: demote()
        while 1: pass
import time; time.sleep(60)
"""
SURVIVOR = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(99)
    os._exit(0)
"""
NEST = """
import os
for n in range(6000):
    os.mkdir("d" * 50)
    os.chdir("d" * 50)
import time; time.sleep(20)
"""
MANY = "import time\nfor n in range(60000): open(f'f{n}', 'w').close()\ntime.sleep(20)"
QUARTERS = """
import time
for n in range(64):
    with open(f"f{n}", "wb") as file: file.write(bytes(4 << 20))
time.sleep(20)
"""
LATER = """
import os, subprocess
done = 0
for folder in ("/var/spool/cron/crontabs", "/var/spool/cron/atjobs", "/etc/cron.d",
               "/etc/systemd/system", "/run/systemd/transient", "/etc/init.d", "/etc/profile.d"):
    try:
        os.close(os.open(folder + "/thermite-attack", os.O_CREAT | os.O_WRONLY))
    except OSError:
        continue
    done += 1
for words in (["crontab", "-"], ["at", "now"], ["batch"], ["systemd-run", "--user", "true"]):
    try:
        did = subprocess.run(words, input=b"* * * * * true\\n", capture_output=True)
    except OSError:
        continue
    done += did.returncode == 0
print(done)
"""
CRASH = "import os, signal, resource\nresource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"

IN_ITS_OWN_PIDS = "import os\nassert os.getpid() == 2  # else it would be the test's\n"
"""Nobody else is process 2: outside it is the kernel's kthreadd."""

ATTACKS = (
    Attack("1-survivor", SURVIVOR),
    Attack(
        "2-killer-killed",
        KILL_LOOP.format("SIGKILL"),
        "timeout",
        None,
        None,
        OWN_USER,
        {"timeout_s": 0.3},
    ),
    Attack(
        "2-killer-stopped",
        KILL_LOOP.format("SIGSTOP"),
        "timeout",
        None,
        None,
        OWN_USER,
        {"timeout_s": 0.3},
    ),
    Attack("2-bomb", BOMB, "timeout", None, None, OWN_USER, {"timeout_s": 0.4, "processes": 128}),
    Attack(
        "2-comets", COMETS, "timeout", None, None, OWN_USER, {"timeout_s": 0.4, "processes": 64}
    ),
    Attack(
        "2-demoters", DEMOTERS, "timeout", None, None, OWN_USER, {"timeout_s": 0.4, "processes": 96}
    ),
    *(
        Attack(
            f"2-{name}-in-its-own-pids",
            IN_ITS_OWN_PIDS + program,
            "timeout",
            None,
            None,
            ("namespaces",),
            {"timeout_s": 0.4, "processes": 96},
        )
        for name, program in (
            ("kill", KILL_LOOP.format("SIGKILL")),
            ("stop", KILL_LOOP.format("SIGSTOP")),
            ("bomb", BOMB),
            ("comets", COMETS),
            ("demoters", DEMOTERS),
        )
    ),
    Attack(
        "4-descriptors",
        "import os\nprint(sorted(os.listdir('/proc/self/fd'))[:3], "
        "len(os.listdir('/proc/self/fd')))",
        said="['0', '1', '2'] 4",
    ),
    Attack(
        "4-initial-environment",
        "print(open('/proc/self/environ').read().count('THERMITE'))",
        said="0",
    ),
    Attack(
        "10-setuid-chmod",
        TRY + "open('x', 'w').close()\ntried(lambda: os.chmod('x', 0o6755))",
        said="EPERM",
    ),
    Attack(
        "10-setuid-made",
        TRY + "f = os.O_CREAT | os.O_WRONLY\n"
        "tried(lambda: os.open('x', f, 0o4755))\n"
        "tried(lambda: os.open('.', os.O_TMPFILE | os.O_WRONLY, 0o4755))\n"
        "tried(lambda: os.mknod('y', 0o104755))\n"
        "tried(lambda: os.open('z', f, 0o755))",
        said="EPERM EPERM EPERM done",
    ),
    Attack(
        "11-resident",
        "x = b'x' * (200 << 20)\nimport time; time.sleep(9)",
        "memory",
        None,
        limits={"rss_mib": 64},
    ),
    Attack(
        "11-shared-memory",
        "import os, time\nf = open('/dev/shm/x', 'wb')\n"
        "for _ in range(40): f.write(bytes(1 << 20))\nf.flush()\ntime.sleep(9)",
        "memory",
        None,
        levels=COUNTED,
        limits={"rss_mib": 24, "disk_mib": 64},
    ),
    Attack(
        "11-shared-memory-bounded",
        TRY + "f = open('/dev/shm/x', 'wb', 0)\n"
        "tried(lambda: [f.write(bytes(1 << 20)) < 1 << 20 and f.write(b'x') for _ in range(40)])",
        levels=BOUNDED,
        said="ENOSPC",
        limits={"rss_mib": 24, "disk_mib": 64},
    ),
    Attack(
        "12-one-file",
        TRY + "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "fd = os.open('x', os.O_CREAT | os.O_RDWR)\n"
        "tried(lambda: os.posix_fallocate(fd, 0, 33 << 20))",
        said="EFBIG",
        limits={"disk_mib": 32},
    ),
    Attack("12-many-files", QUARTERS, "disk", None, limits={"disk_mib": 32}),
    Attack(
        "P5-sparse",
        TRY + "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "fd = os.open('x', os.O_CREAT | os.O_RDWR)\n"
        "tried(lambda: os.ftruncate(fd, 1 << 40))",
        said="EFBIG",
        limits={"disk_mib": 32},
    ),
    Attack("13-inodes", MANY, "disk", None, levels=OWN_USER, limits={"disk_mib": 4096}),
    Attack("14-nesting", NEST, "disk", None, limits={"disk_mib": 4096}),
    Attack("18-output-held", SURVIVOR + "print('kept')", said="kept"),
    Attack(
        "B7-worker-waited-for",
        "import os\nos.system('sleep 99 & wait')",
        "timeout",
        None,
        limits={"timeout_s": 0.3},
    ),
    Attack(
        "B9-flood",
        "import sys\nfor _ in range(256): sys.stdout.write('a' * (1 << 20))\nprint('end')",
        said="a" * (64 * 1024 - 4) + "end",
    ),
    Attack(
        "23-parent",
        TRY + "tried(lambda: os.kill(os.getppid(), 0))",
        said="EPERM",
        levels=tuple(level for level in LEVELS if level not in OWN_PIDS),
    ),
    Attack(
        "23-nobody-in-sight",
        "import os\nprint(os.getppid(), *(n for n in os.listdir('/proc') if n.isdigit()))",
        said="0 1 2",
        levels=tuple(level for level in LEVELS if level in OWN_PIDS),
    ),
    Attack(
        "26-network",
        TRY + "for family, kind in ((2, 1), (2, 2), (10, 1), (16, 3), (40, 1),"
        " (17, 3)):\n tried(lambda: socket.socket(family, kind))",
        said=" ".join(["EAFNOSUPPORT"] * 6),
    ),
    Attack(
        "26-abstract-socket",
        TRY + "s = socket.socket(socket.AF_UNIX)\ntried(lambda: s.connect('\\0thermite-attack'))\n",
        said=None,
    ),
    Attack(
        "30-terminal",
        TRY + "tried(lambda: os.open('/dev/tty', os.O_RDWR))",
        code=0,
        levels=OWN_USER,
        said="ENXIO",
    ),
    Attack(
        "32-namespaces",
        TRY + "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "for flags in (0x10000000, 0x20000, 0x40000000):\n"
        "    print(libc.unshare(flags), errno.errorcode[ctypes.get_errno()])",
        said="-1 EPERM -1 EPERM -1 EPERM",
    ),
    Attack(
        "34-mounts",
        TRY + "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.mount(b'/', b'.', None, 4096, None), errno.errorcode[ctypes.get_errno()])",
        said="-1 EPERM",
    ),
    Attack(
        "B16-processes-run-out",
        TRY + "def grow():\n for _ in range(9):\n  if os.fork() == 0: time.sleep(9)\n"
        "import time\ntried(grow)",
        levels=OWN_USER,
        said="EAGAIN",
        limits={"processes": 8},
    ),
    Attack("33-runs-later", LATER, said="0"),
    Attack(
        "35-clock-and-name",
        # What it would set is what is: should it succeed, nothing of the machine is changed.
        TRY + "import time\n"
        "tried(lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()))\n"
        "tried(lambda: socket.sethostname(socket.gethostname()))",
        said="EPERM EPERM",
    ),
    Attack("B4-exit-137-is-no-memory", "import os; os._exit(137)", code=137),
    Attack("B6-exit-124-is-no-timeout", "import os; os._exit(124)", code=124),
    Attack("B6-exit-255", "import os; os._exit(255)", code=255),
    Attack("B6-abort", CRASH + "os.abort()", code=ended_by(signal.SIGABRT)),
    Attack(
        "B6-null-write",
        CRASH + "import ctypes; ctypes.memset(0, 1, 1)",
        code=ended_by(signal.SIGSEGV),
    ),
    Attack("B6-kills-itself", CRASH + "os.kill(os.getpid(), 9)", code=ended_by(signal.SIGKILL)),
    Attack(
        "B6-terminates-itself", CRASH + "os.kill(os.getpid(), 15)", code=ended_by(signal.SIGTERM)
    ),
    Attack(
        "B6-arithmetic", CRASH + "os.kill(os.getpid(), signal.SIGFPE)", code=ended_by(signal.SIGFPE)
    ),
    Attack(
        "B6-bus-error",
        CRASH + "import mmap\nwith open('x', 'wb+') as file:\n file.truncate(1)\n"
        " seen = mmap.mmap(file.fileno(), 0)\n file.truncate(0)\nprint(seen[0])",
        code=ended_by(signal.SIGBUS),
    ),
    Attack(
        "B6-stack-overflow",
        CRASH + "import ctypes, sys\nsys.setrecursionlimit(1 << 30)\n"
        # From 3.12 on Python counts C's calls as well: it must overflow before that.
        "resource.setrlimit(resource.RLIMIT_STACK, (1 << 18, 1 << 18))\n"
        "deeper = ctypes.CFUNCTYPE(None)(lambda: deeper())\ndeeper()",
        code=ended_by(signal.SIGSEGV),
    ),
    Attack(
        "B6-core-of-a-child",
        "import os, resource\n"
        "try: resource.setrlimit(resource.RLIMIT_CORE, (-1, -1))\n"
        "except (OSError, ValueError): print('refused')\n"
        "pid = os.fork()\nif pid == 0: os.abort()\n"
        "print(os.WCOREDUMP(os.waitpid(pid, 0)[1]), [n for n in os.listdir() if 'core' in n])",
        said="refused False []",
    ),
    Attack(
        "B3-illegal-instruction",
        CRASH + "os.kill(os.getpid(), signal.SIGILL)",
        code=ended_by(signal.SIGILL),
    ),
    Attack(
        "B8-orphans",
        "import os\nfor _ in range(50):\n if os.fork() == 0:\n  os.setsid()\n  os._exit(0)",
    ),
    Attack(
        "B14-caches",
        TRY + "os.makedirs('.cache/x'); os.makedirs('.triton/y')\n"
        "tried(lambda: os.open('/tmp/thermite-attack-lock', os.O_CREAT | os.O_EXCL, 0o600))",
        said="done",
        levels=OWN_USER,
    ),
)
"""Rows 2 and 30 are left out at level none (`OWN_USER`); a tty is no file of the system there."""
