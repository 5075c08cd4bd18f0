"""Runs many command lines, each in a process of its own, for the price of one start.

`python -m tests.cli.many [LINES]` reads a JSON list of command lines from stdin. Each is run
in a fork with stdout and stderr joined in one pipe; with LINES stdout alone is read, and the
pipe is closed after so many lines. What it prints is a list of [exit code, output].
"""

import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Sequence
from pathlib import Path

from thermite.cli.root import main

ROOMS = ("cli", "control", "harness", "audit", "judge")
"""What commands import when they are chosen, and all below; here it is paid for once."""


def one(argv: Sequence[str], lines: int | None) -> tuple[int, str]:
    """Run one command line and return how it ended and what came through the pipe."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(theirs, 1)
        if lines is None:
            os.dup2(theirs, 2)
        os.close(ours)
        os.close(theirs)
        sys.argv = ["thermite", *(os.fsdecode(word.encode()) for word in argv)]
        main()
    os.close(theirs)
    with os.fdopen(ours, "rb", buffering=0) as said:
        seen = said.readlines() if lines is None else [said.readline() for _ in range(lines)]
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), b"".join(seen).decode("latin-1")


def all_of(lines: int | None) -> None:
    """Answer what stands on stdin."""
    for name in ROOMS:
        folder = str(Path(sys.modules["thermite"].__path__[0], name))
        for module in pkgutil.walk_packages([folder], f"thermite.{name}."):
            if not module.name.endswith("__main__"):
                importlib.import_module(module.name)
    sys.stdout.write(json.dumps([one(argv, lines) for argv in json.load(sys.stdin)]))


if __name__ == "__main__":
    all_of(int(sys.argv[1]) if len(sys.argv) > 1 else None)
