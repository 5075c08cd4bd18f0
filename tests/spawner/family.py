"""A spawner with a supervisor and a harness that do what a test writes for them."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.namespaced import Namespace
from thermite.rig.start import SpawnerConfig, command

# What stands in for a child: it notes its start, then does what its name's file says.
CHILD = """
import json, os, sys, time, socket, signal
name, folder = sys.argv[1:]
note = {"pid": os.getpid(), "env": dict(os.environ), "ids": os.getresuid(),
        "fds": sorted(int(n) for n in os.listdir("/proc/self/fd"))[:-1], "at": time.monotonic()}
line = socket.socket(fileno=int(os.environ["THERMITE_FD_SPAWNER"]))
peer = socket.socket(fileno=int(os.environ["THERMITE_FD_PEER"]))
def say(**more):
    with open(f"{folder}/{name}", "a") as file: file.write(json.dumps(note | more) + "\\n")
def ask(**fields):
    line.send(json.dumps(fields).encode())
    return json.loads(line.recv(65536))
with open(f"{folder}/{name}.py") as file:
    exec(file.read())
"""
WAIT = "say()\ntime.sleep(600)"


class Tree:
    """A running spawner with two scripted children.

    group: what its namespace has as /etc/group.
    """

    def __init__(
        self,
        folder: Path,
        harness: str,
        supervisor: str = WAIT,
        *,
        interpreter: str = sys.executable,
        namespace: Namespace | None = None,
        state: str = "rig",
        group: Path | None = None,
        **config: Any,  # noqa: ANN401 - SpawnerConfig's fields
    ) -> None:
        self.folder = folder
        (folder / "child.py").write_text(CHILD)
        (folder / "harness.py").write_text(harness)
        (folder / "supervisor.py").write_text(supervisor)
        children = {
            name: {
                "argv": [interpreter, "-I", str(folder / "child.py"), name, str(folder)],
                "env": {"LANG": "C.UTF-8"},
            }
            for name in ("harness", "supervisor")
        }
        settings = SpawnerConfig(folder / state, **{"isolation": "none", **config})
        told = settings.settings() | {"children": children}
        (folder / state).mkdir(exist_ok=True)
        (folder / state).chmod(0o755)
        (folder / "settings.json").write_text(json.dumps(told))
        with (folder / "settings.json").open() as file:
            prefix = namespace.prefix if namespace else []
            if group is not None:  # the namespace's mounts are its own
                bind = 'mount --bind "$0" /etc/group && exec "$@"'
                prefix = [*prefix, "/bin/sh", "-c", bind, str(group)]
            self.process = subprocess.Popen(
                [*prefix, *command(file.fileno())],
                pass_fds=(file.fileno(),),
                stderr=subprocess.PIPE,
            )

    def notes(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / name
        if not path.exists():
            return []
        return [json.loads(line) for line in path.read_text().splitlines()]

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 30
        while not condition():
            if self.process.poll() or time.monotonic() >= end:
                ended = self.process.returncode
                self.process.kill()
                _, said = self.process.communicate()
                pytest.fail(f"waited in vain; the spawner's exit code: {ended}; it said: {said!r}")
            time.sleep(0.02)

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        _, said = self.process.communicate(timeout=60)
        return self.process.returncode, said.decode()
