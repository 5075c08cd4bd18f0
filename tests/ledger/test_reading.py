"""Live, copied or left behind: a ledger is read as it is, and nothing is left beside it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event as Flag
from threading import Thread

import pytest

from tests.ledger.facts import Clock, Facts
from tests.requirement import shows
from thermite.command.signing_key import SigningKey
from thermite.errors import LedgerError
from thermite.ledger.append import Ledger
from thermite.ledger.backup import back_up
from thermite.ledger.reading import opened
from thermite.ledger.replay import checked, newest, recorded


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.fixture
def copied(ledger: Ledger, facts: Facts, path: Path, tmp_path: Path) -> Callable[..., Path]:
    """Copy the files of a live ledger, which has events in its log, into a folder."""

    def copy(*endings: str) -> Path:
        ledger.append([facts.steered()])
        folder = tmp_path / "copy"
        folder.mkdir()
        for ending in endings:
            shutil.copy(f"{path}{ending}", folder)
        return folder / path.name

    return copy


def test_a_live_ledger_is_read_up_to_its_last_event(
    ledger: Ledger, facts: Facts, path: Path
) -> None:
    ledger.append([facts.steered()])
    assert path.with_name("ledger.db-wal").stat().st_size > 0
    assert newest(path) == 2
    with opened(path) as connection:
        ledger.append([facts.steered()])
        assert newest(connection) == 3


def test_a_reader_does_not_stop_the_writer(ledger: Ledger, facts: Facts, path: Path) -> None:
    ledger.append([facts.steered() for _ in range(50)])
    rows = recorded(path)
    assert next(rows).seq == 1
    assert ledger.append([facts.steered()]) == [52]
    assert [row.seq for row in rows] == list(range(2, 53))


def test_a_closed_ledger_is_read_without_a_trace(ledger: Ledger, path: Path) -> None:
    ledger.close()
    assert newest(path) == 1
    assert names(path.parent) == ["ledger.db", "ledger.lock"]


def test_a_copy_without_its_log_is_what_was_in_the_file(copied: Callable[..., Path]) -> None:
    copy = copied("")
    assert newest(copy) == 1
    assert names(copy.parent) == ["ledger.db"]


def test_a_copy_with_its_log_is_whole(copied: Callable[..., Path]) -> None:
    copy = copied("", "-wal")
    assert newest(copy) == 2
    assert names(copy.parent) == ["ledger.db", "ledger.db-wal"]


def test_a_copy_with_all_its_files_is_whole(copied: Callable[..., Path]) -> None:
    assert newest(copied("", "-wal", "-shm")) == 2


def test_shared_memory_without_a_log_is_no_obstacle(copied: Callable[..., Path]) -> None:
    copy = copied("")
    copy.with_name("ledger.db-shm").write_bytes(b"")
    assert newest(copy) == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(b"", "is no ledger", id="empty"),
        pytest.param(b"hello, world\n" * 100, "is no ledger", id="text"),
        pytest.param(bytes(range(256)) * 64, "is no ledger", id="bytes"),
        pytest.param(
            b"SQLite format 3\0" + b"\xff" * 4080, "is no ledger|can't be read", id="head"
        ),
    ],
)
def test_what_is_no_ledger_is_said_in_words(content: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=words):
        newest(path)
    assert names(tmp_path) == ["ledger.db"]
    assert path.read_bytes() == content


def test_what_is_no_file_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="not a plain file"):
        newest(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        newest(tmp_path / "ledger.db")
    (tmp_path / "file").touch()
    with pytest.raises(FileNotFoundError, match="there is no file"):
        newest(tmp_path / "file" / "ledger.db")


def test_a_file_that_is_written_to_meanwhile_is_noticed(
    ledger: Ledger, path: Path, facts: Facts, reopen: Callable[[], Ledger]
) -> None:
    ledger.close()
    written = "was written to while it was read"
    with pytest.raises(LedgerError, match=written), opened(path), reopen() as again:
        again.append([facts.steered()])


def test_a_backup_of_a_live_ledger_is_whole(ledger: Ledger, facts: Facts, path: Path) -> None:
    stop = Flag()

    def write() -> None:
        while not stop.is_set():
            ledger.append([facts.steered()])

    writer = Thread(target=write)
    writer.start()
    try:
        count = back_up(path, path.with_name("backup.db"))
    finally:
        stop.set()
        writer.join()
    assert 1 <= count <= ledger.size
    assert newest(path.with_name("backup.db")) == count
    assert not [name for name in names(path.parent) if name.startswith("backup.db-")]


def test_a_backup_overwrites_nothing(ledger: Ledger, path: Path) -> None:
    target = path.with_name("backup.db")
    target.write_bytes(b"precious")
    with pytest.raises(LedgerError, match=r"there is a file .*backup.db already"):
        back_up(path, target)
    assert target.read_bytes() == b"precious"
    with pytest.raises(LedgerError, match="can't be written: No such file"):
        back_up(path, path.with_name("nowhere") / "backup.db")
    assert ledger.size == 1


def test_a_backup_can_be_gone_on_with(
    ledger: Ledger, facts: Facts, path: Path, reopen: Callable[[], Ledger]
) -> None:
    ledger.append([facts.steered()])
    back_up(path, path.with_name("backup.db"))
    ledger.append([facts.steered()])
    ledger.close()
    path.with_name("backup.db").replace(path)
    with reopen() as again:
        assert again.append([facts.steered()]) == [3]


@shows("L7")
def test_a_slow_reader_does_not_make_the_log_grow(ledger: Ledger, facts: Facts, path: Path) -> None:
    ledger.append([facts.steered()])
    rows = recorded(path)
    assert next(rows).seq == 1
    for _ in range(30):
        ledger.append([facts.steered("x" * 4000) for _ in range(100)])
    log = path.with_name("ledger.db-wal").stat().st_size
    assert log < 6 << 20  # SQLite starts the log over at 1,000 pages of 4 KiB; 12 MiB went through
    assert sum(1 for _ in rows) == 3001


COUNT = (
    "import os, sys; from pathlib import Path; from thermite.ledger.replay import recorded;"
    "os.setgid(65534); os.setuid(65534); print(len(list(recorded(Path(sys.argv[1])))))"
)


def counted_by_another(path: Path) -> tuple[str, str]:
    """What a plain user finds in a ledger in a folder that it may only read."""
    path.parent.chmod(0o755)
    for file in path.parent.iterdir():
        file.chmod(0o644)
    ended = subprocess.run(
        [sys.executable, "-c", COUNT, path], capture_output=True, text=True, check=False
    )
    return ended.stdout, ended.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_reads_a_live_ledger(
    ledger: Ledger, facts: Facts, path: Path, rig_key: SigningKey, clock: Clock
) -> None:
    with TemporaryDirectory() as folder:  # pytest's own is closed to others
        back_up(path, Path(folder) / "ledger.db")
        with Ledger.open(Path(folder) / "ledger.db", rig_key, now=clock) as live:
            live.append([facts.steered()])
            assert counted_by_another(Path(folder) / "ledger.db") == ("2\n", "")
    assert ledger.size == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_reads_what_a_kill_left(ledger: Ledger, facts: Facts, path: Path) -> None:
    ledger.append([facts.steered()])
    with TemporaryDirectory() as folder:
        for ending in ("", "-wal", "-shm"):
            shutil.copy(f"{path}{ending}", folder)
        assert counted_by_another(Path(folder) / "ledger.db") == ("2\n", "")


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param(
            ["ALTER TABLE events ADD COLUMN more INT AS (instr(body, 'x'))"], id="computed"
        ),
        pytest.param(
            [
                "ALTER TABLE events RENAME TO kept",
                "CREATE VIEW events AS SELECT * FROM kept a, kept b",
            ],
            id="view",
        ),
        pytest.param(
            ["DROP TABLE checkpoints", "CREATE TABLE checkpoints(size, note)"], id="no key"
        ),
    ],
)
def test_tables_that_are_not_ours_are_never_read(
    statements: list[str], ledger: Ledger, path: Path
) -> None:
    ledger.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    for read in (newest, lambda path: [*checked(path)]):
        with pytest.raises(LedgerError, match=r"table \w+ is not what Thermite made; run thermite"):
            read(path)


def test_a_type_that_fills_the_screen_is_not_handed_on(ledger: Ledger, path: Path) -> None:
    ledger.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("DROP TRIGGER events_no_update")
        connection.execute("UPDATE events SET type = CAST(zeroblob(1000000) AS TEXT)")
    with pytest.raises(LedgerError, match="a type that is too long"):
        list(checked(path))
