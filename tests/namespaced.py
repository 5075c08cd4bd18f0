"""A pid namespace of its own for whatever can reach a kill(-1), proven before anything runs.

`Namespace.prefix` is put before a command line. What it starts is process 1 of a new pid
namespace: it compares its namespace with the one that the test lives in and leaves at once
when they are the same; then it starts three bystanders that must outlive everything (a root
process, one of another rig's slot, one of an ordinary user), and the command as its child.
"""

import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

OTHER_SLOT = 57_990
"""In no range that a rig or a test leases from: whoever leased it would have to kill it."""
ORDINARY = 1001
NOBODY = -1
UNSHARE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]


def possible() -> bool:
    """Whether this process may make a pid namespace."""
    if os.getuid() != 0:
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0


class Namespace:
    """One namespace; each bystander alone holds the write end of a named pipe while it lives."""

    def __init__(self, *, ended: int = NOBODY) -> None:
        """`ended`: the uid of the bystander that shall be killed; any other's death ends all."""
        self._ended = ended
        self._folder = tempfile.TemporaryDirectory(prefix="thermite-bystanders-")
        self._read = []
        for number in range(3):
            path = f"{self._folder.name}/{number}"
            os.mkfifo(path)
            self._read.append(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))

    @property
    def prefix(self) -> list[str]:
        """The command that runs a command inside."""
        mine = str(Path("/proc/self/ns/pid").readlink())
        return [
            *UNSHARE,
            sys.executable,
            "-I",
            "-S",
            __file__,
            mine,
            self._folder.name,
            str(self._ended),
        ]

    def bystanders(self) -> int:
        """How many of the three are alive."""
        ended, _, _ = select.select(self._read, [], [], 0)
        return len(self._read) - len(ended)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        for read in self._read:
            os.close(read)
        self._folder.cleanup()


def _main(outside: str, folder: str, ended: int, command: list[str]) -> int:
    if str(Path("/proc/self/ns/pid").readlink()) == outside or os.getpid() != 1:
        sys.stderr.write("this is no pid namespace of its own: nothing is run\n")
        return 99
    bystanders = {}
    for number, uid in enumerate((0, OTHER_SLOT, ORDINARY)):
        write = os.open(f"{folder}/{number}", os.O_WRONLY | os.O_CLOEXEC)
        bystander = os.fork()
        bystanders[bystander] = uid
        if bystander == 0:
            os.set_inheritable(write, True)  # noqa: FBT003 - positional only
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.execv("/bin/sleep", ["/bin/sleep", "86400"])
        os.close(write)
    child = os.posix_spawn(command[0], command, os.environ)
    while True:
        pid, status = os.wait()
        if bystanders.get(pid, ended) != ended:
            sys.stderr.write("a bystander was killed\n")
            return 98
        if pid == child:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
