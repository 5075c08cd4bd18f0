"""Whether a uid has any process at all: one question to the kernel, answered exactly.

getpriority(2) for a user walks the kernel's own list of processes, zombies too, and says
ESRCH when none has that real uid. A new process is put at the list's end before its parent
can die, so one that forks and leaves cannot slip past that walk, as it can past one over
/proc; and the answer costs the same with ten processes on the machine as with a thousand.
All ids of a stage's process are the slot's, and no_new_privs and the filter (no setuid bits)
keep them so: where those are in force, no real uid means nothing is left.
"""

import os
import signal

from .child import Identity, take_identity
from .linux import die_with_parent

_TEST_CODE = 7


def anybody(uid: int) -> bool:
    """Return whether some process has this real uid; also where the kernel will not say."""
    try:
        os.getpriority(os.PRIO_USER, uid)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def is_exact(identity: Identity) -> bool:
    """Try with a process of that identity, which nobody else has, whether the answer is right."""
    if anybody(identity.uid):
        return False
    ready, said = os.pipe2(os.O_CLOEXEC)
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            take_identity(identity)
            die_with_parent(signal.SIGKILL, parent)
            os.write(said, b"1")
            signal.pause()
        finally:
            os._exit(_TEST_CODE)
    os.close(said)
    is_there = bool(os.read(ready, 1))
    os.close(ready)
    seen = anybody(identity.uid)
    os.kill(pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    dead = anybody(identity.uid)
    os.waitpid(pid, 0)
    return is_there and seen and dead and not anybody(identity.uid)
