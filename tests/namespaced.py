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
from pathlib import Path
from types import TracebackType
from typing import Self

OTHER_SLOT = 58990
ORDINARY = 1001


def possible() -> bool:
    """Whether this process may make a pid namespace."""
    return (
        os.getuid() == 0
        and subprocess.run(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "true"],
            capture_output=True,
            check=False,
        ).returncode
        == 0
    )


class Namespace:
    """One namespace with its bystanders; each holds the write end of a pipe while it lives."""

    def __init__(self) -> None:
        pipes = [os.pipe() for _ in range(3)]
        self._read = [read for read, _ in pipes]
        self._write = [write for _, write in pipes]
        for write in self._write:
            os.set_inheritable(write, True)  # noqa: FBT003 - positional only

    @property
    def prefix(self) -> list[str]:
        """The command that runs a command inside."""
        fds = [str(write) for write in self._write]
        mine = str(Path("/proc/self/ns/pid").readlink())
        inside = [sys.executable, "-I", "-S", __file__, mine, *fds]
        return ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *inside]

    @property
    def fds(self) -> list[int]:
        """Descriptors that the command must inherit."""
        return self._write

    def started(self) -> None:
        """Let go of the bystanders' ends."""
        while self._write:
            os.close(self._write.pop())

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
        self.started()
        for read in self._read:
            os.close(read)


def _main(outside: str, fds: list[int], command: list[str]) -> int:
    if str(Path("/proc/self/ns/pid").readlink()) == outside or os.getpid() != 1:
        sys.stderr.write("this is no pid namespace of its own: nothing is run\n")
        return 99
    for fd, uid in zip(fds, (0, OTHER_SLOT, ORDINARY), strict=True):
        if os.fork() == 0:
            for other in set(fds) - {fd}:
                os.close(other)
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            os.execv("/bin/sleep", ["/bin/sleep", "86400"])
    for fd in fds:
        os.close(fd)
    child = os.posix_spawn(command[0], command, os.environ)
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], [int(fd) for fd in sys.argv[2:5]], sys.argv[5:]))
