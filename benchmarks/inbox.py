"""A flooded inbox: copies of orders that were accepted, and new ones, while nobody looks.

A real rig is served, its supervisor stopped (SIGSTOP), and 20,000 files are renamed into the
inbox: nine of ten are copies. Then it goes on, and each file must be decided: every new order
once, no copy again, with a receipt for each. Beside it, in the same run and folder, as many
files are renamed and their signatures verified twice and nothing else, which is the least that
there is to do where nobody remembers bytes that were verified before.

Aim: none missed, none decided twice, at least 500 decisions/s. `inbox.py [--files N] [FOLDER]`
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))

from thermite.command.envelope import read_envelope
from thermite.command.keyring import Keyring, SigningKey
from thermite.control.home import ControlHome
from thermite.control.order import sign_order
from thermite.control.rigs import KnownRig, known_rig
from thermite.ledger.replay import recorded
from thermite.schema.command import NoBody, TrustedKey
from thermite.schema.event import CommandAccepted

ROOT: Final = Path(__file__).parents[1]
FILES: Final = 20_000
NEW_IN: Final = 10
"""One of so many files is a new order; the others are copies of the first ones."""
FIRST: Final = 200
AIM: Final = 500.0
PATIENCE_S: Final = 1800.0


def thermite(folder: Path, *args: str) -> dict[str, Any]:
    """Run a command and return its document."""
    argv = [sys.executable, "-m", "thermite", *args, "--json"]
    done = subprocess.run(argv, env=environment(folder), capture_output=True, check=True)
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def environment(folder: Path) -> dict[str, str]:
    """Return what every process of this run gets."""
    here = {"PYTHONPATH": str(ROOT), "THERMITE_DATA": str(folder / "control")}
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "THERMITE_ISOLATION": "none"} | here


@contextmanager
def served(
    folder: Path, public: Path
) -> Iterator[tuple[psutil.Process, Callable[[Callable[[], object]], None]]]:
    """Serve a rig that trusts a key, and give its process and how to wait for what it does."""
    where = ["--state", str(folder / "rig"), "--trust", str(public), "--fallback"]
    argv = [sys.executable, "-m", "thermite", "rig", "serve", *where]
    with (folder / "rig.log").open("wb") as log:
        process = subprocess.Popen(argv, env=environment(folder), stdout=log, stderr=log)

    def until(done: Callable[[], object]) -> None:
        wait(done, lambda: ended(process, folder))

    try:
        until((folder / "rig" / "outbox" / "rig.json").exists)
        yield psutil.Process(process.pid), until
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def ended(process: "subprocess.Popen[bytes]", folder: Path) -> str | None:
    """Return in words how a rig ended that should serve, None while it does."""
    if process.poll() is None:
        return None
    said = (folder / "rig.log").read_text(encoding="utf-8", errors="replace").strip()
    return f"the rig can't be served (exit {process.returncode}): {said[-1000:]}"


def wait(done: Callable[[], object], ended: Callable[[], str | None]) -> None:
    """Wait for something that the rig does; one that has ended never does it."""
    end = time.monotonic() + PATIENCE_S
    while not done():
        if (said := ended()) is not None:
            sys.exit(said)
        if time.monotonic() > end:
            raise TimeoutError(f"not within {PATIENCE_S:.0f} s")
        time.sleep(0.01)


def process_of(rig: psutil.Process, name: str) -> psutil.Process:
    """Return the rig's process that runs a module."""
    below = [rig, *rig.children(recursive=True)]
    return next(one for one in below if one.cmdline()[-2:] == ["-m", name])


def used(process: psutil.Process) -> float:
    """Return the processor time that a process has taken, s."""
    times = process.cpu_times()
    return float(times.user + times.system)


def drop(inbox: Path, raws: list[bytes], prefix: str) -> None:
    """Rename files into the inbox, each whole."""
    for number, raw in enumerate(raws):
        half = inbox / "tmp" / f"{prefix}{number}"
        half.write_bytes(raw)
        half.chmod(0o644)
        half.rename(inbox / "new" / f"{prefix}{number:06}.cmd.json")


def is_empty(inbox: Path) -> bool:
    """Return whether nothing waits to be decided."""
    with os.scandir(inbox / "new") as entries:
        return not any(entry.name.endswith(".cmd.json") for entry in entries)


def least(folder: Path, raws: list[bytes], key: SigningKey) -> float:
    """Return how long renaming and verifying twice takes by itself, s."""
    for name in ("tmp", "new", "done"):
        (folder / "raw" / name).mkdir(parents=True)
    drop(folder / "raw", raws, "raw")
    roles = TrustedKey(id=key.public.id, public=key.public.base64, label="", roles=["command"])
    keyring = Keyring([roles])
    start = time.perf_counter()
    for path in sorted((folder / "raw" / "new").iterdir()):
        raw = path.read_bytes()
        for _ in range(2):
            if not keyring.find_signers(read_envelope(raw)):
                raise RuntimeError(f"{path} is not signed by {key.public.id}")
        path.rename(folder / "raw" / "done" / path.name)
    return time.perf_counter() - start


def flood(folder: Path, files: int) -> None:
    """Print the line of one run."""
    key = SigningKey.generate()
    public = folder / "operator.pub"
    public.write_text(f"{key.public.line('operator')}\n", encoding="utf-8")
    inbox = folder / "rig" / "inbox"
    with served(folder, public) as (process, until):
        thermite(folder, "rig", "add", "bench", "--inbox", str(inbox))
        rig = known(folder)
        count = FIRST + files // NEW_IN
        orders = [
            sign_order(
                "checkpoint_now", NoBody(), rig=rig, keys=[key], after=None, now=datetime.now(UTC)
            )
            for _ in range(count)
        ]
        first, new = orders[:FIRST], orders[FIRST:]
        drop(inbox, [order.raw for order in first], "first")
        until(lambda: is_empty(inbox))
        copies = [first[at % FIRST].raw for at in range(files - len(new))]
        stopped = process_of(process, "supervisor")
        both = (stopped, process_of(process, "thermite.harness"))
        stopped.suspend()
        drop(inbox, copies, "copy")
        drop(inbox, [order.raw for order in new], "new")
        before = [used(one) for one in both]
        start = time.perf_counter()
        stopped.resume()
        until(lambda: is_empty(inbox))
        took = time.perf_counter() - start
        costs = [1e6 * (used(one) - was) / files for one, was in zip(both, before, strict=True)]
        own = time.process_time()
        raw = least(folder, [*copies, *(order.raw for order in new)], key)
        own = 1e6 * (time.process_time() - own) / files
        until(lambda: has_receipts(folder, count))
    accepted = [
        row.event.data.sha256
        for row in recorded(folder / "rig" / "ledger.db")
        if isinstance(row.event.data, CommandAccepted)
    ]
    missed = {order.digest for order in orders} - set(accepted)
    twice = len(accepted) - len(set(accepted))
    rate = files / took
    kept = "kept" if rate >= AIM and not missed and not twice else "MISSED"
    print(
        f"{files} files, {len(new)} of them new: {len(missed)} missed, {twice} decided twice,"
        f" {rate:.0f} decisions/s, aim >= {AIM:.0f}: {kept}; rename and verify alone"
        f" {files / raw:.0f}/s; processor time of a decision: supervisor {costs[0]:.0f} us and"
        f" harness {costs[1]:.0f} us, alone {own:.0f} us; load average {os.getloadavg()[0]:.1f}"
    )


def known(folder: Path) -> KnownRig:
    """Return the rig as control keeps it."""
    return known_rig(ControlHome(folder / "control"), "bench")


def has_receipts(folder: Path, count: int) -> bool:
    """Return whether each accepted order has its receipt."""
    return len(list((folder / "rig" / "outbox").glob("*.accepted.receipt.json"))) == count


def main() -> None:
    """Print the line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path())
    parser.add_argument("--files", type=int, default=FILES)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder, prefix="inbox-") as folder:
        flood(Path(folder).absolute(), args.files)


if __name__ == "__main__":
    main()
