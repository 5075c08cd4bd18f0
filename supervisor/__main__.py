"""The process: `python -m supervisor`, started by the spawner.

The environment says where the rig is (`THERMITE_STATE`) and which descriptor leads to the
harness (`THERMITE_FD_PEER`). One thread does everything but fetching and the watch, which
only wake it. It ends with 1 when the harness's end of the socket is closed for good, so that
the spawner starts it again with whatever it needs; while the spawner keeps both ends open, a
restart of the harness is only a new hello. It ends with 78 when it can't begin before somebody
has mended what it says, as rig.toml: the spawner then ends the rig. What strikes it at work may be
over at its next start.
"""

import os
import select
import signal
import socket
import stat
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Final

from supervisor.fetch import Fetcher
from supervisor.offer import Desk, fetch_all
from supervisor.peer import Peer, PeerGoneError
from supervisor.unlock import unlock
from supervisor.watch import Watch
from thermite.errors import UsageError
from thermite.schema.child_exit import REFUSED
from thermite.schema.offer import Fetch, Ready, Unlock, Unlocked
from thermite.schema.rig_settings import MAX_BYTES, RigSettings, read_rig_settings

SCAN_S: Final = 5.0
"""The folder is scanned so often whatever events say, s (ledger and signing, 1.4)."""
HINTED_S: Final = 0.1
"""Scans that events ask for are at least so far apart, s: a burst makes one scan, not each."""
SETTLING_S: Final = 1.0
"""While a file settles it is looked at so often, s: half of what settling takes."""
FETCHES: Final = 2
"""Fetches at once: one slow server doesn't hold up another command."""


class Supervisor:
    """The loop: messages, hints and the scan."""

    def __init__(self, state: Path, sock: socket.socket, uid: int, settings: RigSettings) -> None:
        self._wake_end, self._wake_me = socket.socketpair()
        for end in (self._wake_end, self._wake_me):
            end.settimeout(0)
        self._stopping = False
        self.has_begun = False
        self._peer = Peer(sock, uid)
        self._fetched: SimpleQueue[Ready] = SimpleQueue()
        self._fetcher = Fetcher(state / "inbox", settings)
        self._pool = ThreadPoolExecutor(FETCHES)
        self._unlocks = ThreadPoolExecutor(1)
        self._unlocked: SimpleQueue[tuple[Unlocked, bytes]] = SimpleQueue()
        self._desk = Desk(state, self._peer, self._start_fetch, self._start_unlock)
        self._watch = Watch(self._desk.inbox.new, self.wake)

    def run(self) -> None:
        """Work until `stop`, or until the harness's end is closed.

        Raises:
            PeerGoneError: the harness's end is closed.
        """
        last = -SCAN_S
        try:
            self._fetcher.tidy()
            self._desk.greet()
            self.has_begun = True
            while not self._stopping:
                last = self._scan_when_due(last)
                hinted = self._sleep(last, at_once=self._desk.read_ahead())
                self._desk.hear()
                self._report_fetches()
                self._report_unlocks()
                if hinted:
                    last = min(last, time.monotonic() - SCAN_S + HINTED_S)
        finally:
            self._watch.close()
            self._fetcher.stop()
            for pool in (self._pool, self._unlocks):
                pool.shutdown(wait=False, cancel_futures=True)

    def wake(self) -> None:
        """Come back from sleep: something may have happened. From any thread."""
        try:
            self._wake_me.send(b"!")
        except BlockingIOError:
            return  # it is awake enough

    def stop(self) -> None:
        """End the loop. From a signal handler."""
        self._stopping = True
        self.wake()

    def _scan_when_due(self, last: float) -> float:
        pause = SETTLING_S if self._desk.settling else SCAN_S
        if time.monotonic() - last < pause:
            return last
        self._watch.follow(self._desk.scan())
        return time.monotonic()

    def _sleep(self, last: float, *, at_once: bool) -> bool:
        """Wait for a message, a hint or the next scan; return whether there was a hint.

        Args:
            last: when the folder was scanned, s on the monotonic clock.
            at_once: there is more to do: look, and don't wait.
        """
        pause = SETTLING_S if self._desk.settling else SCAN_S
        left = 0.0 if at_once else max(0.0, last + pause - time.monotonic())
        ready, _, _ = select.select([self._peer.sock, self._wake_end], [], [], left)
        if self._wake_end not in ready:
            return False
        self._wake_end.recv(4096)
        return True

    def _start_fetch(self, n: int, digest: str, wanted: Fetch) -> None:
        def work() -> None:
            self._fetched.put(fetch_all(self._fetcher, n, digest, wanted))
            self.wake()

        self._pool.submit(work)

    def _report_fetches(self) -> None:
        while True:
            try:
                self._desk.fetched(self._fetched.get_nowait())
            except Empty:
                return

    def _start_unlock(self, wanted: Unlock) -> None:
        def work() -> None:
            self._unlocked.put(unlock(self._fetcher.accesses, wanted, self._fetcher.started))
            self.wake()

        self._unlocks.submit(work)

    def _report_unlocks(self) -> None:
        while True:
            try:
                self._desk.unlocked(*self._unlocked.get_nowait())
            except Empty:
                return


def main() -> int:
    """Run the process and return its exit code."""
    supervisor = None
    try:
        state, sock, uid = _handed_over()
        supervisor = Supervisor(state, sock, uid, _settings(state))
        signal.signal(signal.SIGTERM, lambda *_: supervisor.stop())
        supervisor.run()
    except UsageError as error:
        sys.stderr.write(f"supervisor: {error}\n")
        return REFUSED
    except PermissionError as error:
        given = f"let user {os.geteuid()} use it, whose supervisor this is"
        sys.stderr.write(f"supervisor: {error.filename}: {error.strerror}: {given}\n")
        return 1 if supervisor is not None and supervisor.has_begun else REFUSED
    except OSError as error:
        sys.stderr.write(f"supervisor: {error.filename}: {error.strerror}\n")
        return 1
    except PeerGoneError:
        sys.stderr.write("supervisor: the harness's end of the socket is closed\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _handed_over() -> tuple[Path, socket.socket, int]:
    """Return the rig's folder, the socket and the harness's uid, as the spawner gave them.

    Raises:
        UsageError: started by hand.
    """
    try:
        state = Path(os.environ["THERMITE_STATE"])
        sock = socket.socket(fileno=int(os.environ["THERMITE_FD_PEER"]))
    except (KeyError, ValueError, OSError) as error:
        raise UsageError(
            f"{error}: the spawner starts this process; run thermite rig serve"
        ) from error
    return state, sock, int(os.environ.get("THERMITE_PEER_UID") or os.getuid())


def _settings(state: Path) -> RigSettings:
    path = state / "rig.toml"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return RigSettings()
    with os.fdopen(descriptor, "rb", closefd=True) as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageError(f"{path} is no plain file, as a rig's settings are")
        return read_rig_settings(file.read(MAX_BYTES + 1), str(path))


if __name__ == "__main__":
    sys.exit(main())
