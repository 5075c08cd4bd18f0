"""A real rig, served as a user would, whose processes a test may find and kill by number."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from tests.namespaced import Namespace, possible
from tests.serving import ROOT, Serving, argv_of, children_of

KEEPER = Path(__file__).with_name("served_keeper.py")
SERVES = "serves; SHA256:"
"""In the line that a harness says when it decides on commands."""
PATIENCE_S = 120.0
"""Longest wait for one thing on a machine that is busy with others."""


class ServedRig(Serving):
    """One rig in one folder: home/rig its state, home/control the operator's side.

    Args:
        namespace: where users are leased: everything runs inside it, its keeper too.
    """

    def __init__(self, home: Path, namespace: Namespace | None = None, *serve: str) -> None:
        super().__init__(home / "rig")
        self.home, self.log, self.endings = home, home / "rig.log", home / "endings"
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "PYTHONPATH": str(ROOT),
            "THERMITE_DATA": str(home / "control"),
            "THERMITE_ISOLATION": "none" if namespace is None else "users",
            # As for all tests; a full one is forty blocks before the first campaign.
            "THERMITE_SELFTEST": os.environ.get("THERMITE_SELFTEST", "short"),
        }
        public = home / "control" / "keys" / "operator.pub"
        self.told("keygen", str(public.with_suffix(".key")), "--no-passphrase")
        where = ["--state", str(self.state_folder), "--trust", str(public), "--fallback"]
        argv = [sys.executable, "-m", "thermite", "rig", "serve", *where, *serve]
        keeper = [sys.executable, str(KEEPER), str(self.log), str(self.endings), *argv]
        prefix = namespace.prefix if namespace else []
        self._keeper = subprocess.Popen(
            [*prefix, *keeper],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=self.env,
        )
        self._is_inside = namespace is not None

    def serve(self) -> None:
        """Serve the rig, unless it is served; returns at once."""
        if self._keeper.stdin is None:
            raise AssertionError("a keeper has a standard input")
        self._keeper.stdin.write(b"serve\n")
        self._keeper.stdin.flush()

    def serve_until_there(self) -> None:
        """Serve the rig and wait until it decides on commands, or has ended."""
        before, ended = self.said().count(SERVES), len(self.exit_codes())
        self.serve()
        self.until(
            lambda: self.said().count(SERVES) > before or len(self.exit_codes()) > ended,
        )

    def know(self) -> None:
        """Make the rig known to control."""
        self.until((self.state_folder / "outbox" / "rig.json").exists)
        self.told("rig", "add", "bench", "--inbox", str(self.state_folder / "inbox"))

    def run(self, *args: str) -> "subprocess.CompletedProcess[str]":
        """Run a public command."""
        done = subprocess.run(
            [sys.executable, "-m", "thermite", *args],
            capture_output=True,
            text=True,
            cwd=self.home,
            env=self.env,
            stdin=subprocess.DEVNULL,
            timeout=300,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    def told(self, *args: str, code: int = 0) -> dict[str, Any]:
        """Run a public command and return its one document."""
        done = self.run(*args, "--json")
        assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
        document: dict[str, Any] = json.loads(done.stdout)
        return document

    def assign(self, contract: Path, *args: str, code: int = 0) -> dict[str, Any]:
        """Send an order to the rig."""
        kit = str(contract.parent.parent / "kit")
        return self.told("assign", str(contract), "--kit", kit, "--rig", "bench", *args, code=code)

    def said(self) -> str:
        """All that the rig said."""
        return self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""

    def exit_codes(self) -> list[int]:
        """How each serving ended, so far."""
        if not self.endings.exists():
            return []
        return [int(line) for line in self.endings.read_text(encoding="ascii").split()]

    def until(self, condition: Callable[[], object], most_s: float = PATIENCE_S) -> None:
        """Wait until something holds."""
        end = time.monotonic() + most_s
        while not condition():
            assert time.monotonic() < end, f"not within {most_s} s; the rig said: {self.said()}"
            time.sleep(0.02)

    def stop(self) -> None:
        """End the rig as an operator does, and wait for it."""
        spawner = self.spawner()
        if spawner is None:
            return
        before = len(self.exit_codes())
        os.kill(spawner.pid, signal.SIGTERM)
        self.until(lambda: len(self.exit_codes()) > before)

    def close(self) -> None:
        """End whatever is left, the keeper too."""
        self._keeper.communicate(timeout=PATIENCE_S)

    def keeping(self) -> psutil.Process | None:
        """The keeper."""
        try:
            top = psutil.Process(self._keeper.pid)
        except psutil.NoSuchProcess:
            return None
        if not self._is_inside:
            return top
        below = [one for child in children_of(top) for one in children_of(child)]
        return next((one for one in below if str(KEEPER) in argv_of(one)), None)


@contextlib.contextmanager
def served(home: Path, *serve: str, users: bool | None = None) -> Iterator[ServedRig]:
    """Give a rig that is not served yet, and end what is left of it.

    Args:
        users: whether slots get users of their own, inside a pid namespace that proves itself
            first; where that can be had unless said otherwise.
    """
    with contextlib.ExitStack() as stack:
        inside = possible() if users is None else users
        namespace = stack.enter_context(Namespace()) if inside else None
        rig = ServedRig(home, namespace, *serve)
        try:
            yield rig
            if namespace is not None:
                assert namespace.bystanders() == 3
        finally:
            rig.close()
