"""One rig at work: its ledger opened and replayed, its campaigns, its door."""

import os
import platform
import socket
import sqlite3
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from thermite import __version__
from thermite.command import strict_base64
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerBusyError, LedgerError, UsageError
from thermite.harness import clock
from thermite.harness.book import Book, Draft, make_ledger, open_ledger
from thermite.harness.campaigns import Campaigns
from thermite.harness.door import Door
from thermite.harness.evidence import check_evidence
from thermite.harness.folder import RigFolder
from thermite.harness.judge_job import Bench
from thermite.harness.keys import coin_key, rig_key
from thermite.harness.outbox import witnessed
from thermite.harness.trust import first_trust
from thermite.judge.build.store import BuildStore
from thermite.kit.git import mend_repositories
from thermite.ledger.append import Ledger
from thermite.rig.canary import probe
from thermite.rig.processor import processor, processor_model
from thermite.rig.settings_file import settings_in
from thermite.rig.stages import Stages
from thermite.rig.toolchain import toolchain
from thermite.schema.event import ENVELOPES, Event, IsolationProbe, LedgerOpened
from thermite.schema.rig_settings import RigSettings, SelftestMode

LAYOUT: Final = "1"
"""The ledger's table layout (ledger and signing, 3.3)."""
FIRST_TRUST: Final = "THERMITE_FIRST_TRUST"
"""The variable in which `rig serve --trust` hands over public lines."""
SELFTEST: Final = "THERMITE_SELFTEST"
"""The variable that goes before `selftest` of rig.toml."""
SIGN_EVERY_S: Final = 5.0
"""How often new events are looked at for a checkpoint that is due after 60 s."""


class Rig:
    """A rig from its harness's start to its end."""

    def __init__(self, bench: Bench, key: SigningKey, settings: RigSettings) -> None:
        self.bench, self.key, self.settings = bench, key, settings
        self._campaigns: Campaigns | None = None
        self._door: Door | None = None
        self._stopping = threading.Event()

    @classmethod
    def open(cls, state: Path, stages: Stages) -> "Rig":
        """Open the ledger, or make it, and replay it.

        Raises:
            LedgerError: it must not be written to, or gone on from; UsageError: rig.toml can't
                be read.
        """
        settings = settings_in(state) or RigSettings()
        bench = open_bench(state, stages, settings)
        try:
            check_evidence(bench.book.state, bench.folder.ledger)
        except LedgerError:
            bench.book.close()
            raise
        return cls(bench, rig_key(bench.folder.keys, fresh=False), settings)

    def start(self, peer: socket.socket, fatal: Callable[[BaseException], None]) -> None:
        """Go on with what was running, and decide on commands."""
        door = Door(self.bench, self.key, self.settings, peer, fatal)
        self._campaigns = Campaigns(self.bench, door.ended, fatal)
        self._door = door
        door.start(self._campaigns.start)
        self._campaigns.resume()
        signing = self.bench.book.ledger.checkpoint_if_old, self._stopping, fatal
        threading.Thread(target=sign_old, args=signing, daemon=True).start()

    def close(self) -> None:
        """Start nothing more, let what runs come to a point where it can go on, and close."""
        self._stopping.set()
        if self._door is not None:
            self._door.close()
        if self._campaigns is not None:
            self._campaigns.stop()
        self.bench.book.close()


def sign_old(
    sign: Callable[[], object],
    stopping: threading.Event,
    fatal: Callable[[BaseException], None],
    *,
    every_s: float = SIGN_EVERY_S,
) -> None:
    """Sign new events that have waited for a checkpoint, again and again, until told to stop.

    Args:
        sign: signs them if they are old; fatal: is called once when the process can't go on;
        every_s: the pause between looks, s.
    """
    while not stopping.wait(every_s):
        try:
            sign()
        except LedgerBusyError:
            continue  # nothing is lost: it waits for the next look
        except Exception as error:  # noqa: BLE001 - a thread's fault must not pass unseen
            if not stopping.is_set():  # else the ledger may have been closed meanwhile
                fatal(error)
            return


def open_bench(state: Path, stages: Stages, settings: RigSettings) -> Bench:
    """Open the ledger, or make it, replay it, and record what keeps stages apart here.

    Raises:
        LedgerError: it must not be written to.
    """
    folder = RigFolder(state)
    folder.make()
    fresh = not folder.ledger.exists()
    key, coin = rig_key(folder.keys, fresh=fresh), coin_key(folder.keys, fresh=fresh)
    book = Book(_ledger(folder, key, settings, fresh=fresh), folder.ledger)
    # Whose only user this process is, now that it has the ledger.
    for problem in mend_repositories(folder.repos):
        sys.stderr.write(f"harness: {problem}\n")
    _trust_at_first(book)
    book.append(Draft(_probe(folder, stages)))
    store = BuildStore(folder.store)
    _keep_own_builds(store)
    toolchain_here = toolchain(stages.path_variable)
    turn, first = threading.Lock(), selftest_mode(settings)
    return Bench(book, folder, stages, store, coin, turn, toolchain_here, first, settings.mcp)


def selftest_mode(settings: RigSettings) -> SelftestMode:
    """Return which selftest a first campaign has: THERMITE_SELFTEST goes before rig.toml.

    Raises:
        UsageError: the variable names none.
    """
    said = os.environ.get(SELFTEST) or settings.selftest
    try:
        mode: SelftestMode = msgspec.convert(said, SelftestMode)
    except msgspec.ValidationError:
        raise UsageError(f"{SELFTEST} is {said!a}: use full or short") from None
    return mode


def _probe(folder: RigFolder, stages: Stages) -> IsolationProbe:
    """Try from a stage what must not be possible; a kit's file stands for all kits."""
    canary = folder.repos / "canary"
    canary.write_bytes(b"a stage that reads this reads kits\n")
    private = {"kit": canary, "ledger": folder.ledger, "keys": folder.keys / "rig.key"}
    return probe(stages, private, folder.state / "canary-from-a-stage", os.getpid())


def _trust_at_first(book: Book) -> None:
    """Trust the keys that the rig was served with, if it trusts none yet."""
    lines = os.environ.get(FIRST_TRUST)
    if lines and not book.state.trust_version:
        book.append(first_trust(lines.encode(), book.state))


def _ledger(folder: RigFolder, key: SigningKey, settings: RigSettings, *, fresh: bool) -> Ledger:
    if not fresh:
        reach = witnessed(folder.outbox, key.public)
        return open_ledger(folder.ledger, key, witnessed=reach)
    return make_ledger(folder.ledger, _opening(key, settings), key)


def _opening(key: SigningKey, settings: RigSettings) -> Event:
    data = LedgerOpened(
        ledger=os.urandom(16).hex(),
        rig=key.public.id,
        rig_key=strict_base64.encode(key.public.raw),
        versions={
            "thermite": __version__,
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "layout": LAYOUT,
        },
        target=settings.target,
        image=os.environ.get("THERMITE_IMAGE_ID") or None,
        machine=_machine(),
    )
    return ENVELOPES["ledger_opened"](
        id=clock.event_id(),
        assignment=None,
        lane=None,
        actor="harness",
        at=clock.stamp(),
        boot=clock.boot_id(),
        mono_ns=clock.mono_ns(),
        cause=None,
        command=None,
        data=data,
    )


def _keep_own_builds(store: BuildStore) -> None:
    here = processor()
    other = store.keep_only_of(here)
    if other is not None:
        said = f"the builds kept here are of another processor, {other}: they are made again"
        sys.stderr.write(f"harness: {said} on {here}\n")


def _machine() -> dict[str, Any]:
    """Return what this machine says of itself."""
    told = platform.uname()
    return {
        "system": told.system,
        "kernel": told.release,
        "machine": told.machine,
        "cpus": os.cpu_count(),
        "cpu": processor_model(),
    }
