"""A ledger of a newer Thermite: whoever would write to it refuses in words and touches nothing."""

import hashlib
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
import pytest

from tests.harness.live import NoStages
from tests.harness.test_by_hand import Stopped, line
from thermite.command.note import Checkpoint, sign_note
from thermite.errors import LedgerError
from thermite.harness import clock
from thermite.harness.by_hand import accept_loss, trust_here
from thermite.harness.keys import coin_key
from thermite.harness.rig import open_bench
from thermite.ledger.chain import leaf, link
from thermite.ledger.opening import look
from thermite.rig.stages import Stages
from thermite.schema.rig_settings import RigSettings

UNKNOWN = b'{"type":"verdict@2","id":"00","data":{"new":1}}'


@pytest.fixture
def rig(tmp_path: Path) -> Stopped:
    made = Stopped(tmp_path / "rig")
    coin_key(made.folder.keys, fresh=True)
    return made


def newer_layout(rig: Stopped) -> None:
    connection = sqlite3.connect(rig.folder.ledger)
    connection.execute("PRAGMA user_version=2")
    connection.close()


def newest_unknown(rig: Stopped) -> None:
    append(rig, ("verdict@2", UNKNOWN))


def older_unknown(rig: Stopped) -> None:
    known = msgspec.json.encode(rig.facts.probe())
    append(rig, ("verdict@2", UNKNOWN), ("isolation_probe", known))


def append(rig: Stopped, *rows: tuple[str, bytes]) -> None:
    """Append events as a newer Thermite would, with its checkpoint."""
    standing = look(rig.folder.ledger, rig.key.public, 0)
    head, said = standing.head, standing.opened
    connection = sqlite3.connect(rig.folder.ledger, isolation_level=None)
    for kind, body in rows:
        seq = standing.tree.size + 1
        head = link(head, seq, leaf(body))
        standing.tree.append(leaf(body))
        values = (seq, kind, body, head)
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, NULL)", values)
    size = standing.tree.size
    note = Checkpoint(said.rig, said.ledger, size, standing.tree.root(size), head, clock.stamp())
    text = sign_note(note, rig.key).encode()
    connection.execute("INSERT INTO checkpoints VALUES (?, ?)", (size, text))
    connection.close()


def harness(rig: Stopped) -> None:
    open_bench(rig.state, cast("Stages", NoStages()), RigSettings())


def trust(rig: Stopped) -> None:
    trust_here(rig.state, line("anna"), replace=True)


def loss(rig: Stopped) -> None:
    accept_loss(rig.state)


@pytest.mark.parametrize("writer", [harness, trust, loss])
@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(newer_layout, "version 2, and .* version 1: upgrade", id="L3-layout"),
        pytest.param(newest_unknown, "event 2 is 'verdict@2'.* upgrade", id="L3-newest"),
        pytest.param(older_unknown, "event 2 is 'verdict@2'.* upgrade", id="L3-older"),
    ],
)
def test_a_newer_ledger_is_not_touched(
    rig: Stopped,
    change: Callable[[Stopped], None],
    writer: Callable[[Stopped], None],
    words: str,
) -> None:
    change(rig)
    before = everything(rig.state)
    with pytest.raises(LedgerError, match=words):
        writer(rig)
    assert everything(rig.state) == before


def everything(state: Path) -> dict[str, str]:
    """All files, and the digest of each but the lock, which holds the number of who looked."""
    return {
        str(path.relative_to(state)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in state.rglob("*")
        if path.is_file() and path.suffix != ".lock"
    }
