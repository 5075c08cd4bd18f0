"""A ledger that a full disk has no room for: no fault of the ledger's, and made when there is room.

It was a LedgerError, by which a harness says that somebody has to mend something, and the spawner
gave the rig up for good.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.ledger.facts import Clock, Facts
from tests.serving import ROOT
from tests.walk.test_broken_rigs import FULL, fill
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerUnavailableError
from thermite.ledger.append import Ledger
from thermite.ledger.reading import opened

PAGE = 4096
ENOUGH = 64
"""Pages in which a ledger, its log and its shared memory have room."""


def test_a_full_disk_is_no_reason_to_give_a_ledger_up(tmp_path: Path) -> None:
    inside = ["unshare", "--mount", "sh", "-c", FULL, str(tmp_path)]
    able = os.getuid() == 0 and subprocess.run([*inside, "true"], check=False).returncode == 0
    if not able:
        pytest.skip("no filesystem can be mounted here: this needs root and CAP_SYS_ADMIN")
    argv = [sys.executable, "-c", f"from {__name__} import full; full({str(tmp_path)!r})"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    done = subprocess.run([*inside, *argv], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def full(small: str) -> None:
    """What the test above does, where `small` is a filesystem of its own."""
    path, key, ballast = Path(small) / "ledger.db", SigningKey.generate(), Path(small) / "ballast"
    clock = Clock()
    facts = Facts(key, clock)
    fill(ballast)
    whole = ballast.stat().st_size
    for pages in (0, 1, 2, 4, 8):
        os.truncate(ballast, whole - pages * PAGE)
        with pytest.raises(LedgerUnavailableError, match="make room in"):
            Ledger.create(path, facts.opened(), key, now=clock)
        assert not path.exists()
    os.truncate(ballast, whole - ENOUGH * PAGE)
    Ledger.create(path, facts.opened(), key, now=clock).close()
    path.with_name("ledger.db-wal").write_bytes(b"a log without its shared memory")
    tempfile.gettempdir()  # looked for once, and only where there is room
    fill(ballast)
    with pytest.raises(LedgerUnavailableError, match="copied to be read"), opened(path):
        pass
