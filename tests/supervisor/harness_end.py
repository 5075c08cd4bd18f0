"""The harness' end of the supervisor's socket, for tests of what the supervisor says."""

import array
import fcntl
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from supervisor.peer import SEALS
from tests.orders import Orders
from thermite.schema.offer import (
    Decided,
    Hello,
    Offer,
    Refuse,
    ToHarness,
    encode,
    name_bytes,
    to_harness,
)

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0


class Harness:
    """The other end of the socket, answering as a test wishes."""

    def __init__(self, orders: Orders) -> None:
        self.orders = orders
        self.sock, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(PATIENCE_S)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.process: subprocess.Popen[bytes] | None = None
        self.is_up = False

    def start(self, *prefix: str) -> None:
        """Start the supervisor, by a program that takes its command line if there is one."""
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "supervisor"],
            env={
                "PYTHONPATH": str(ROOT),
                "PATH": os.environ["PATH"],
                "THERMITE_STATE": str(self.orders.state),
                "THERMITE_FD_PEER": str(self.theirs.fileno()),
            },
            pass_fds=[self.theirs.fileno()],
            stderr=subprocess.PIPE,
        )

    def greet(self) -> None:
        self.is_up = True
        self.sock.send(encode(Hello(n=0)))

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def hear(self, timeout_s: float = PATIENCE_S) -> tuple[ToHarness, bytes | None]:
        self.sock.settimeout(timeout_s)
        raw, beside, _, _ = self.sock.recvmsg(65536, socket.CMSG_SPACE(4) + socket.CMSG_SPACE(12))
        body = None
        for level, kind, data in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptor = array.array("i", data)[0]
                assert fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) == SEALS
                body = os.read(descriptor, 1 << 21)
                os.close(descriptor)
        return to_harness(raw), body

    def offer(self, timeout_s: float = PATIENCE_S) -> tuple[Offer | Refuse, bytes | None]:
        """The next message that is no greeting."""
        until = time.monotonic() + timeout_s
        while True:
            message, body = self.hear(max(0.01, until - time.monotonic()))
            if isinstance(message, Offer | Refuse):
                return message, body
            if message == Hello(n=0) and self.is_up:
                self.sock.send(encode(Hello(n=1)))

    def silent(self, for_s: float) -> bool:
        try:
            self.offer(for_s)
        except TimeoutError:
            return True
        return False

    def decide(self, message: Offer | Refuse, *, move: bool = True) -> None:
        if move:
            name = os.fsdecode(name_bytes(message.name))
            (self.orders.new / name).rename(self.orders.state / "inbox" / "done" / name)
        said = Decided(n=message.n, outcome="accepted", code=None, message=None, receipt=None)
        self.sock.send(encode(said))
