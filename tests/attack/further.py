"""Attacks that no row of the ranked table has: each names what it gets past, were it not closed.

`T` stands for what a thread can do when the first one of its process has left, which is then a
zombie to whoever asks /proc for the process; `R` for room that no limit of the kernel bounds.
"""

import signal

from tests.attack.candidates import COUNTED, TRY, Attack

FIRST_LEAVES = """
import ctypes, os, threading, time
def leave(): ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
def go_on(act):
    threading.Thread(target=act).start()
    leave()
"""
"""The bare system call ends the calling thread alone, also the first one."""

WHO_WATCHES = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
parents, top = {}, os.getppid()
for name in os.listdir("/proc"):
    try: parents[int(name)] = int(open(f"/proc/{name}/stat").read().rpartition(")")[2].split()[1])
    except (OSError, ValueError): pass
rig = {pid for pid, above in parents.items() if top in {pid, above}} - {os.getpid()}
assert rig
def traced(pid):
    if libc.ptrace(0x4206, pid, 0, 0): raise PermissionError  # PTRACE_SEIZE
def taken(pid):
    if libc.syscall(438, os.pidfd_open(pid), 3, 0) < 0: raise PermissionError  # pidfd_getfd
for pid in rig:
    for way in (lambda: os.kill(pid, 0), lambda: signal.pidfd_send_signal(os.pidfd_open(pid), 0),
                lambda: traced(pid), lambda: taken(pid), lambda: open(f"/proc/{pid}/mem", "rb"),
                lambda: os.open(f"/proc/{pid}/fd/0", 0), lambda: os.readlink(f"/proc/{pid}/cwd")):
        try: way()
        except PermissionError: pass
        except (FileNotFoundError, ProcessLookupError): pass  # one that has just ended
        else: print("could")
"""
"""Those that a stage could stop or read are its parent and its siblings: the spawner, attendant,
nursery and the process of the next stage; where it sees itself alone, the first process."""

FURTHER = (
    Attack("who-watches", WHO_WATCHES, said=""),
    Attack(
        "T-runs-on",
        f"{FIRST_LEAVES}go_on(lambda: time.sleep(20))",
        "timeout",
        None,
        limits={"timeout_s": 0.4},
    ),
    Attack(
        "T-resident",
        f"{FIRST_LEAVES}def eat():\n time.sleep(0.1)\n x = b'x' * (200 << 20)\n time.sleep(9)\n"
        "go_on(eat)",
        "memory",
        None,
        limits={"rss_mib": 64},
    ),
    Attack(
        "T-survivor",
        f"{FIRST_LEAVES}if os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n"
        "  go_on(lambda: time.sleep(99))\n os._exit(0)\nos.wait()\ntime.sleep(0.2)",
    ),
    Attack(
        "R-beyond-the-end",
        TRY + "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "fd = os.open('x', os.O_CREAT | os.O_RDWR)\n"
        "zero, size = ctypes.c_long(0), ctypes.c_long(1 << 30)\n"
        "print(libc.fallocate(fd, 1, zero, size), errno.errorcode[ctypes.get_errno()])\n"
        "os.write(fd, b'x' * 8192)\n"
        "print(libc.fallocate(fd, 3, zero, ctypes.c_long(4096)), os.fstat(fd).st_size)",
        said="-1 ENOTSUP 0 8192",  # to take room back is no attack
        limits={"disk_mib": 32},
    ),
    Attack(
        "R-attributes",
        TRY + "open('x', 'w').close()\n"
        "tried(lambda: os.setxattr('x', 'user.x', b'x'))\n"
        "tried(lambda: os.getxattr('x', 'user.x'))",
        said="ENOTSUP ENODATA",
    ),
    Attack(
        "limits-of-others",
        TRY + "import resource\nwho, what = os.getppid() or 1, resource.RLIMIT_CORE\n"
        "try: resource.prlimit(who, what, (0, 0))\nexcept PermissionError: print('refused')\n"
        "resource.prlimit(0, what, (0, 0))\nresource.setrlimit(what, (0, 0))\n"
        "print(resource.prlimit(os.getpid(), what))",
        said="refused (0, 0)",
    ),
    Attack(
        "R-shared-memory-in-a-folder",
        "import os, time\nos.makedirs('/dev/shm/a/b')\n"
        "for n in range(5): open(f'/dev/shm/a/b/{n}', 'wb').write(bytes(10 << 20))\ntime.sleep(9)",
        "memory",
        None,
        levels=COUNTED,
        limits={"rss_mib": 32, "disk_mib": 16},
    ),
    Attack(
        "R-shared-memory-among-empty-files",
        "import os, time\nfor n in range(1500): open(f'/dev/shm/a{n}', 'w').close()\n"
        "for n in range(5): open(f'/dev/shm/b{n}', 'wb').write(bytes(10 << 20))\n"
        "for n in range(1500): open(f'/dev/shm/c{n}', 'w').close()\ntime.sleep(9)",
        "memory",
        None,
        levels=COUNTED,
        limits={"rss_mib": 32, "disk_mib": 16},
    ),
    Attack(
        "R-names-alone",
        "import os, time\nos.mkdir('/dev/shm/a')\n"
        "for n in range(40000): open(f'/dev/shm/a/{n}', 'w').close()\ntime.sleep(9)",
        "memory",
        None,
        levels=COUNTED,
        limits={"rss_mib": 32},
    ),
    Attack(
        "R-everybodys-folders",
        "import os, time\nos.mkdir('/var/tmp/thermite-attack-a')\n"
        "for n in range(5): open(f'/var/tmp/thermite-attack-a/{n}', 'wb').write(bytes(10 << 20))\n"
        "time.sleep(9)",
        "disk",
        None,
        levels=COUNTED,
        limits={"disk_mib": 16},
    ),
    Attack(
        "signal-by-a-descriptor",
        # The kernel sends it when something can be read; the rig must live on.
        "import fcntl, os, signal, socket, time\na, b = socket.socketpair()\n"
        "fcntl.fcntl(a, fcntl.F_SETOWN, os.getppid())\n"
        f"fcntl.fcntl(a, 10, {int(signal.SIGKILL)})\n"
        "fcntl.fcntl(a, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)\nb.send(b'x')\ntime.sleep(0.1)",
    ),
    Attack(
        "name-like-a-stat-line",
        "import ctypes, os, time\nctypes.CDLL(None).prctl(15, b') Z 1 1 1 1\\n', 0, 0, 0)\n"
        "if os.fork() == 0: time.sleep(99)",
    ),
)
"""A signal-by-a-descriptor is F_SETSIG (10) on what is one's own, with another's process."""
