"""No file can end an audit with a traceback, a hang, or a trace beside it."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.audit.test_verify import codes
from thermite.audit.verify import audit
from thermite.errors import LedgerError
from thermite.ledger.tables import APPLICATION_ID, SCHEMA

EVENTS = SCHEMA["table", "events"]
CHECKPOINTS = SCHEMA["table", "checkpoints"]
FOREVER = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"


def made(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"\x00" * 8192, id="zeros"),
        pytest.param(b"SQLite format 3\x00", id="only a name"),
        pytest.param(b"hello\n" * 500, id="text"),
        pytest.param(os.urandom(20_000), id="noise"),
    ],
)
def test_what_is_no_ledger_can_not_be_audited(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"is no ledger|can't be read"):
        audit(path)
    assert [file.name for file in tmp_path.iterdir()] == ["ledger.db"]


def test_another_programs_database_is_no_ledger(tmp_path: Path) -> None:
    path = tmp_path / "ledger.db"
    connection = sqlite3.connect(path)
    connection.execute(EVENTS)
    connection.close()
    with pytest.raises(LedgerError, match="its application id is 0x0"):
        audit(path)


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param([], id="no table"),
        pytest.param([CHECKPOINTS], id="no events"),
        pytest.param(
            [f"CREATE VIEW events AS {FOREVER} x AS seq, 'x' AS type FROM n"], id="endless view"
        ),
        pytest.param(["CREATE VIRTUAL TABLE events USING fts5(seq)"], id="virtual table"),
        pytest.param(["CREATE TABLE events(x)"], id="other columns"),
        pytest.param(
            ["CREATE TABLE events(seq INTEGER PRIMARY KEY, type, b, hash, dedup, body AS (b))"],
            id="computed column",
        ),
        pytest.param(["CREATE TABLE events(seq, type, body, hash, dedup)"], id="no key"),
    ],
)
def test_other_tables_can_not_be_audited(statements: list[str], tmp_path: Path) -> None:
    with pytest.raises(LedgerError):
        audit(made(tmp_path / "ledger.db", *statements))


LOOSE = "CREATE TABLE events(seq INTEGER PRIMARY KEY, type, body, hash, dedup)"
LOOSE_NOTES = "CREATE TABLE checkpoints(size INTEGER PRIMARY KEY, note)"


@pytest.mark.parametrize(
    "values",
    [
        "1, NULL, NULL, NULL, NULL",
        "1, 7, 7.5, 7, 7",
        "1, x'ff', 'text', 'text', x'ff'",
        "1, 'steered', x'', x'', ''",
        "-5, 'x', x'00', zeroblob(32), NULL",
        "9223372036854775807, 'x', x'00', zeroblob(32), NULL",
        "1, 'x', zeroblob(1000000), zeroblob(32), NULL",
        "1, CAST(x'80ff' AS TEXT), CAST('{\"type\":1}' AS BLOB), zeroblob(32), CAST(x'80' AS TEXT)",
    ],
)
def test_values_of_any_kind_are_findings(values: str, tmp_path: Path) -> None:
    path = made(
        tmp_path / "ledger.db",
        LOOSE,
        LOOSE_NOTES,
        f"INSERT INTO events VALUES ({values})",
        "INSERT INTO checkpoints VALUES (-1, NULL), (0, 'x'), (1, x'ff'), (2, 3.5)",
    )
    found = audit(path)
    assert found.fails
    assert "opening_unreadable" in {code for code, _ in codes(found)}


ANY_NUMBER = "CREATE TABLE events(seq ANY PRIMARY KEY, type, body, hash, dedup) WITHOUT ROWID"
ANY_SIZE = "CREATE TABLE checkpoints(size ANY PRIMARY KEY, note) WITHOUT ROWID"


@pytest.mark.parametrize("number", ["'abc'", "x'ff'", "2.5", "CAST(x'80' AS TEXT)"])
def test_what_stands_where_a_number_must_is_said_in_words(number: str, tmp_path: Path) -> None:
    row = "'x', x'00', zeroblob(32), NULL"
    events = made(
        tmp_path / "events.db",
        ANY_NUMBER,
        LOOSE_NOTES,
        f"INSERT INTO events VALUES (1, {row}), ({number}, {row}), (3, {row})",
    )
    notes = made(
        tmp_path / "notes.db", LOOSE, ANY_SIZE, f"INSERT INTO checkpoints VALUES ({number}, x'00')"
    )
    for path in (events, notes):
        with suppress(LedgerError):
            assert "damaged_file" in {code for code, _ in codes(audit(path))}


@pytest.mark.parametrize("column", ["type", "hash", "dedup", "body"])
def test_large_values_do_not_fill_the_memory_whatever_their_column(
    column: str, tmp_path: Path
) -> None:
    path = made(
        tmp_path / "ledger.db",
        LOOSE,
        LOOSE_NOTES,
        *(f"INSERT INTO events VALUES ({n}, 'x', x'00', x'00', NULL)" for n in range(1, 41)),
        f"UPDATE events SET {column} = zeroblob(4000000)",
        "INSERT INTO checkpoints SELECT seq, zeroblob(4000000) FROM events",
    )
    code = (
        "import sys; from pathlib import Path; from resource import *;"
        "from thermite.audit.verify import audit;"
        "used = int(Path('/proc/self/statm').read_text().split()[0]) * getpagesize();"
        "setrlimit(RLIMIT_AS, (used + (120 << 20),) * 2); print(audit(Path(sys.argv[1])).fails)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=False
    )
    assert (ended.stdout, ended.stderr) == ("True\n", "")


def test_rows_that_no_rig_writes_are_not_read_without_end(tmp_path: Path) -> None:
    rows = (f"INSERT INTO events VALUES ({n}, 'x', x'00', x'00', NULL)" for n in range(1, 41))
    path = made(
        tmp_path / "ledger.db",
        LOOSE,
        LOOSE_NOTES,
        *rows,
        "UPDATE events SET body = zeroblob(5000000)",
    )
    (damage,) = [one for one in audit(path).findings if one.code == "damaged_file"]
    assert damage.seq in range(10, 20)
    assert damage.explain.startswith("rows as large as these are no rig's after event 1")
    assert damage.got is not None
    assert damage.got.endswith("bytes more than a rig writes in as many rows")


@pytest.mark.parametrize(
    "index",
    [
        pytest.param("CREATE INDEX more ON events(instr(type, 'x'))", id="index"),
        pytest.param("CREATE TABLE more(x CHECK(instr(x, 'x') = 0))", id="table"),
    ],
)
def test_sqlite_computes_nothing_that_a_stranger_wrote(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = sqlite3.connect

    def connect(*given: Any, **said: Any) -> sqlite3.Connection:  # noqa: ANN401
        connection: sqlite3.Connection = real(*given, **said)
        connection.set_trace_callback(asked.append)
        return connection

    path = made(tmp_path / "ledger.db", EVENTS, CHECKPOINTS, index)
    monkeypatch.setattr(sqlite3, "connect", connect)
    assert ("schema_changed", None) in codes(audit(path))
    assert asked
    assert not [one for one in asked if "_check" in one]


def test_a_value_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    path = made(
        tmp_path / "ledger.db",
        LOOSE,
        LOOSE_NOTES,
        "INSERT INTO events VALUES (1, 'x', zeroblob(100000000), zeroblob(32), NULL)",
    )
    with pytest.raises(LedgerError, match=r"can't be read: .*too big"):
        audit(path)


def test_what_is_no_plain_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(LedgerError, match="not a plain file"):
            audit(path)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_file_that_was_cut_off_is_a_finding_or_no_ledger(
    share: float, whole: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut.db"
    cut.write_bytes(whole.read_bytes()[: int(whole.stat().st_size * share)])
    with suppress(LedgerError):
        assert audit(cut).fails


def test_a_schema_that_is_no_text_is_no_ledger(whole: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.db"
    raw = whole.read_bytes()
    assert raw.count(b"BEFORE UPDATE ON events") == 1
    copy.write_bytes(raw.replace(b"BEFORE UPDATE ON events", b"BEFORE UPDATE ON \xe3vents"))
    with pytest.raises(LedgerError, match="can't be read"):
        audit(copy)


@pytest.mark.parametrize(
    ("cell", "after"),
    [
        pytest.param(rb"\x17(?=.{7}isolation_probe\{)", 22, id="the last event"),
        pytest.param(rb"\x17(?=.{4}thermite/)", None, id="the last checkpoint"),
    ],
)
def test_rows_that_lead_back_to_the_beginning_are_no_endless_ledger(
    cell: bytes, after: int | None, whole: Path, tmp_path: Path
) -> None:
    found = re.findall(cell, whole.read_bytes(), re.DOTALL)
    assert found == [b"\x17"]  # 23, the last row's number
    copy = tmp_path / "copy.db"
    copy.write_bytes(re.sub(cell, b"\x05", whole.read_bytes(), flags=re.DOTALL))
    damages = [place for code, place in codes(audit(copy)) if code == "damaged_file"]
    assert after in damages


def test_a_page_of_no_kind_is_a_finding_though_the_files_own_check_dies_of_it(
    whole: Path, tmp_path: Path
) -> None:
    with sqlite3.connect(whole) as connection:
        (body,) = connection.execute("SELECT body FROM events WHERE seq = 12").fetchone()
    connection.close()
    raw = bytearray(whole.read_bytes())
    size = int.from_bytes(raw[16:18], "big")
    leaf = raw.index(body[:64]) // size * size
    assert raw[leaf] == 13  # SQLite's word for a leaf of a table
    raw[leaf] ^= 1
    copy = tmp_path / "copy.db"
    copy.write_bytes(raw)
    assert "damaged_file" in {code for code, _ in codes(audit(copy))}


def test_a_copy_that_was_cut_short_is_called_damaged_and_not_another_kind_of_file(
    whole: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"
    copy.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    with pytest.raises(LedgerError, match=r"is damaged .* cut short: .*ledger backup"):
        audit(copy)


def test_an_audit_leaves_everything_as_it_was(whole: Path, tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    folder.mkdir()
    copy = folder / "ledger.db"
    shutil.copy(whole, copy)
    before = copy.read_bytes(), copy.stat().st_mtime_ns
    audit(copy)
    assert (copy.read_bytes(), copy.stat().st_mtime_ns) == before
    assert [file.name for file in folder.iterdir()] == ["ledger.db"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file that another user reads")
def test_a_plain_user_audits_what_it_may_only_read(whole: Path) -> None:
    code = (
        "import os, sys; from pathlib import Path; from thermite.audit.verify import audit;"
        "os.setgid(65534); os.setuid(65534); print(audit(Path(sys.argv[1])).fails)"
    )
    with tempfile.TemporaryDirectory() as folder:  # pytest's own is closed to others
        Path(folder).chmod(0o755)
        copy = Path(folder) / "ledger.db"
        shutil.copy(whole, copy)
        copy.chmod(0o644)
        ended = subprocess.run(
            [sys.executable, "-c", code, copy], capture_output=True, text=True, check=False
        )
    assert (ended.stdout, ended.stderr) == ("False\n", "")


def test_the_room_needs_no_rig_git_or_torch() -> None:
    code = (
        "import sys; import thermite.audit.verify; "
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'git', 'torch', 'click'}),"
        "sorted(n for n in sys.modules if n.startswith(('thermite.rig', 'thermite.judge'))))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[] []\n"
