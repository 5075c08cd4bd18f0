"""A file that is not in order is refused at open, in words, and left as it is."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.ledger.facts import Clock, Facts
from tests.requirement import shows
from thermite.audit.verify import audit
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError
from thermite.ledger.append import Ledger
from thermite.ledger.backup import back_up
from thermite.ledger.replay import recorded
from thermite.ledger.tables import SCHEMA
from thermite.ledger.views import renew

TRIGGERS = [text for (kind, _), text in SCHEMA.items() if kind == "trigger"]


@pytest.fixture
def closed(ledger: Ledger, facts: Facts, path: Path) -> Path:
    ledger.append([facts.probe()])
    ledger.append(facts.campaign())
    ledger.close()
    return path


def change(path: Path, *statements: str) -> None:
    """Do to a ledger what somebody with another program would."""
    connection = sqlite3.connect(path, isolation_level=None)
    for kind, name in SCHEMA:
        if kind == "trigger":
            connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for text in TRIGGERS:
        connection.execute(text)
    connection.close()


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        pytest.param(
            ["PRAGMA user_version=2"], "version 2, and .* version 1: upgrade", id="L3-newer"
        ),
        pytest.param(["PRAGMA application_id=7"], "is no ledger: its application id", id="other"),
        pytest.param(
            ["UPDATE events SET body = cast(replace(body, '0.31', '0.91') AS BLOB) WHERE seq = 17"],
            "event 17 does not fit the hash before it",
            id="an edited verdict",
        ),
        pytest.param(["DELETE FROM events WHERE seq = 5"], "event 6 does not fit", id="a gap"),
        pytest.param(["DELETE FROM events WHERE seq = 21"], "newest checkpoint names", id="cut"),
        pytest.param(["DELETE FROM events"], "it has no event 1", id="emptied"),
        pytest.param(["DELETE FROM checkpoints"], "has no checkpoint", id="no checkpoint"),
        pytest.param(
            ["ALTER TABLE events ADD COLUMN more TEXT"], "table events is not", id="column"
        ),
        pytest.param(["CREATE TABLE more(x)"], "table more does not belong", id="table"),
        pytest.param(["DROP INDEX events_once"], "index events_once is missing", id="index"),
        pytest.param(
            ["UPDATE checkpoints SET note = cast(replace(note, 'head', 'tail') AS BLOB)"],
            "this is no checkpoint",
            id="a note",
        ),
    ],
)
def test_what_is_not_in_order_is_not_written_to(
    statements: list[str], words: str, closed: Path, reopen: Callable[[], Ledger]
) -> None:
    change(closed, *statements)
    before = closed.read_bytes()
    with pytest.raises(LedgerError, match=words):
        reopen()
    assert closed.read_bytes() == before


def test_a_missing_trigger_is_noticed(closed: Path, reopen: Callable[[], Ledger]) -> None:
    connection = sqlite3.connect(closed)
    connection.execute("DROP TRIGGER events_no_update")
    connection.close()
    with pytest.raises(LedgerError, match="trigger events_no_update is missing"):
        reopen()


@shows("L3")
def test_a_newest_event_of_an_unknown_type_is_never_written_after(
    closed: Path, rig_key: SigningKey, clock: Clock
) -> None:
    append_unknown(closed, rig_key, clock)
    with pytest.raises(LedgerError, match=r"event 22 is 'verdict@2', which .* upgrade Thermite"):
        Ledger.open(closed, rig_key, now=clock)


@shows("L3")
def test_a_known_type_with_more_members_is_a_newer_versions_too(
    closed: Path, rig_key: SigningKey, clock: Clock, facts: Facts
) -> None:
    raw = msgspec.json.encode(facts.steered())
    body = raw.replace(b'"lane":null}', b'"lane":null,"tone":"kind"}')
    assert body != raw
    append_unknown(closed, rig_key, clock, "steered", body)
    before = closed.read_bytes()
    with pytest.raises(
        LedgerError, match=r"^event 22 \(steered\) can't be read: .*upgrade Thermite"
    ):
        Ledger.open(closed, rig_key, now=clock)
    assert closed.read_bytes() == before


def append_unknown(
    path: Path,
    rig_key: SigningKey,
    clock: Clock,
    kind: str = "verdict@2",
    body: bytes = b'{"type":"verdict@2","id":"00","data":{"new":1}}',
) -> None:
    """Append an event as a newer Thermite would, with its checkpoint."""
    from thermite.command.note import Checkpoint, sign_note
    from thermite.ledger.chain import leaf, link
    from thermite.ledger.opening import look

    standing = look(path, rig_key.public, 0)
    head = link(standing.head, 22, leaf(body))
    standing.tree.append(leaf(body))
    said = standing.opened
    note = Checkpoint(said.rig, said.ledger, 22, standing.tree.root(22), head, clock())
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("INSERT INTO events VALUES (22, ?, ?, ?, NULL)", (kind, body, head))
    connection.execute(
        "INSERT INTO checkpoints VALUES (22, ?)", (sign_note(note, rig_key).encode(),)
    )
    connection.close()


def test_a_ledger_that_lost_its_end_is_refused(
    closed: Path, rig_key: SigningKey, clock: Clock
) -> None:
    with pytest.raises(LedgerError) as caught:
        Ledger.open(closed, rig_key, now=clock, witnessed=57)
    assert str(caught.value) == (
        "the ledger ends at event 21, and a receipt names event 57: refuse to write; put a backup"
        " back that holds it, or give the events up with thermite ledger accept-loss"
        f" {closed.parent}"
    )
    Ledger.open(closed, rig_key, now=clock, witnessed=21).close()


def test_a_rig_opens_no_other_rigs_ledger(closed: Path, clock: Clock) -> None:
    with pytest.raises(LedgerError, match="is the ledger of rig 56475aa7"):
        Ledger.open(closed, SigningKey.generate(), now=clock)


def test_a_ledger_is_made_once(
    closed: Path, facts: Facts, rig_key: SigningKey, clock: Clock
) -> None:
    with pytest.raises(LedgerError, match="there is a ledger at"):
        Ledger.create(closed, facts.opened(), rig_key, now=clock)


def test_event_1_must_name_the_key_that_signs(
    path: Path, facts: Facts, rig_key: SigningKey, clock: Clock
) -> None:
    for event in (facts.steered(), facts.opened(rig="00" * 16), facts.opened(rig_key="AAAA")):
        with pytest.raises(LedgerError, match="ledger_opened"):
            Ledger.create(path, event, rig_key, now=clock)
    assert not path.exists()


def test_what_a_kill_left_of_a_new_ledger_is_no_ledger(
    path: Path, facts: Facts, rig_key: SigningKey, clock: Clock
) -> None:
    path.with_name("ledger.db.new").write_bytes(b"SQLite format 3\0half of it")
    path.with_name("ledger.db.new-wal").write_bytes(b"\x37\x7f\x06\x82and its log")
    Ledger.create(path, facts.opened(), rig_key, now=clock).close()
    assert sorted(file.name for file in path.parent.iterdir()) == ["ledger.db", "ledger.lock"]


@pytest.mark.parametrize("ending", ["", "-wal", "-journal"])
def test_what_is_not_of_sqlite_is_not_removed_for_a_new_ledger(
    path: Path, facts: Facts, rig_key: SigningKey, clock: Clock, ending: str
) -> None:
    notes = path.with_name(f"ledger.db.new{ending}")
    notes.write_bytes(b"my notes")
    with pytest.raises(LedgerError, match=f"{notes.name} is in the way"):
        Ledger.create(path, facts.opened(), rig_key, now=clock)
    assert notes.read_bytes() == b"my notes"
    notes.unlink()
    notes.mkdir()
    with pytest.raises(LedgerError, match=f"{notes.name} is in the way"):
        Ledger.create(path, facts.opened(), rig_key, now=clock)


def test_there_is_no_ledger_where_none_is(path: Path, rig_key: SigningKey, clock: Clock) -> None:
    with pytest.raises(FileNotFoundError, match="there is no ledger at"):
        Ledger.open(path, rig_key, now=clock)
    assert not path.with_suffix(".lock").exists()


def test_a_second_writer_is_refused_with_the_firsts_number(
    ledger: Ledger, reopen: Callable[[], Ledger]
) -> None:
    with pytest.raises(LedgerError, match=f"is written to by process {os.getpid()}"):
        reopen()
    ledger.close()
    reopen().close()


def test_a_second_process_is_refused(ledger: Ledger, path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from thermite.ledger.place import WriterLock;"
        "WriterLock(Path(sys.argv[1]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=False
    )
    assert f"is written to by process {os.getpid()}: only one process may" in ended.stderr
    assert ledger.size == 1


def test_a_closed_ledger_takes_nothing(ledger: Ledger, facts: Facts) -> None:
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerError, match="it is closed"):
        ledger.append([facts.steered()])


@pytest.mark.parametrize("name", [b"caf\xe9", b"a b", b"50%25?#", "größer".encode()])
def test_a_folder_may_have_any_name(
    name: bytes, tmp_path: Path, facts: Facts, rig_key: SigningKey, clock: Clock
) -> None:
    folder = tmp_path / os.fsdecode(name)
    folder.mkdir()
    path = folder / "ledger.db"
    with Ledger.create(path, facts.opened(), rig_key, now=clock) as made:
        made.append([facts.probe()])
    with Ledger.open(path, rig_key, now=clock):
        pass
    assert [row.seq for row in recorded(path)] == [1, 2]
    assert renew(path, folder / "views.db") == 2
    assert back_up(path, folder / "copy.db") == 2
    assert not audit(path).fails
