"""The independent verifier: what the audit calls whole it passes, and every forgery fails."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.audit.forger import edit, rechain, renumber, resign
from tests.golden.make_promotion import KEY
from thermite.audit.verify import audit
from thermite.command.signing_key import SigningKey
from thermite.ledger.tables import SCHEMA

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "verify_ledger.py"
GOLDEN = ROOT / "tests" / "golden"
PROMOTION = GOLDEN / "promotion" / "ledger.db"


def verify(path: Path, *more: str) -> tuple[int, str]:
    argv = [sys.executable, "-I", str(TOOL), str(path), *more]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def doctored(folder: Path, *changes: Callable[[sqlite3.Connection], object]) -> Path:
    copy = folder / "ledger.db"
    shutil.copy(PROMOTION, copy)
    triggers = [(name, text) for (kind, name), text in SCHEMA.items() if kind == "trigger"]
    with closing(sqlite3.connect(copy, isolation_level=None)) as connection:
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for change in changes:
            change(connection)
        for _, text in triggers:
            connection.execute(text)
    return copy


def seq_of(kind: str) -> int:
    with closing(sqlite3.connect(f"file:{PROMOTION}?immutable=1", uri=True)) as connection:
        found = connection.execute("SELECT min(seq) FROM events WHERE type = ?", (kind,)).fetchone()
    return int(found[0])


def without(kind: str) -> Callable[[sqlite3.Connection], object]:
    return lambda c: c.execute("DELETE FROM events WHERE seq = ?", (seq_of(kind),))


def resigned(connection: sqlite3.Connection) -> None:
    rechain(connection)
    resign(connection, KEY)


def test_it_fits_on_a_few_pages_and_imports_nothing_of_ours() -> None:
    text = TOOL.read_text()
    assert text.count("\n") <= 250
    assert max(map(len, text.splitlines())) <= 100
    assert "import thermite" not in text
    assert "from thermite" not in text


def test_a_judged_promotion_passes_here_and_in_the_audit() -> None:
    code, said = verify(PROMOTION, "--rig-key", audit(PROMOTION).rig_key or "")
    assert code == 0
    assert [line.split(" ")[0] for line in said.splitlines()] == ["PASS", "PASS"]
    assert not audit(PROMOTION).fails


def test_a_promotion_without_its_runs_fails_though_the_chain_is_whole() -> None:
    code, said = verify(GOLDEN / "ledger" / "ledger.db")
    assert code == 8
    assert said.startswith("PASS 62 events, 4 checkpoints")
    assert "FAIL c0c0c0c0c0c0" in said


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param([edit(2, b"be fast", b"be slow")], id="edit"),
        pytest.param([edit(2, b'"', b"'")], id="no JSON"),
        pytest.param([edit(2, b"{", b'{"type":"x",')], id="a key twice"),
        pytest.param([edit(9, b"1", b"2"), rechain], id="edit and rechain"),
        pytest.param([without("lane_opened")], id="delete"),
        pytest.param([without("lane_opened"), renumber, rechain], id="delete and renumber"),
        pytest.param([lambda c: c.execute("DELETE FROM checkpoints WHERE size > 0")], id="notes"),
        pytest.param([lambda c: c.execute("DELETE FROM events WHERE seq > 20")], id="cut"),
        pytest.param([lambda c: c.execute("CREATE VIEW more AS SELECT 1")], id="view"),
        pytest.param(
            [lambda c: c.execute("ALTER TABLE events ADD COLUMN more INT AS (seq)")], id="computed"
        ),
        pytest.param(
            [lambda c: c.execute("UPDATE events SET dedup = 'x' WHERE seq = 9")], id="key"
        ),
        pytest.param(
            [lambda c: c.execute("UPDATE events SET type = 'x' WHERE seq = 9")], id="type"
        ),
        pytest.param([lambda c: resign(c, SigningKey.generate())], id="another key's notes"),
        pytest.param([lambda c: c.execute("PRAGMA user_version = 2")], id="another layout"),
    ],
)
def test_what_was_done_to_the_file_fails(
    tmp_path: Path, changes: list[Callable[[sqlite3.Connection], object]]
) -> None:
    code, said = verify(doctored(tmp_path, *changes))
    assert code == 8
    assert said.startswith("FAIL ")


def in_all(kind: str, old: str, new: str) -> Callable[[sqlite3.Connection], object]:
    def change(connection: sqlite3.Connection) -> None:
        found = connection.execute(
            "UPDATE events SET body = CAST(replace(CAST(body AS TEXT), ?, ?) AS BLOB)"
            " WHERE type = ? AND instr(CAST(body AS TEXT), ?)",
            (old, new, kind, old),
        )
        assert found.rowcount

    return change


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(
            in_all("run", '"arm":"candidate","position', '"arm":"champion","position'),
            "did not run in the coin's order",
            id="the arms' order",
        ),
        pytest.param(in_all("run", '"t_ns":8', '"t_ns":7'), ": D is", id="faster runs"),
        pytest.param(in_all("check", '"pass":true', '"pass":false'), "lacks a good", id="checks"),
        pytest.param(in_all("judge_started", '"k":1', '"k":201'), "alpha_k", id="alpha"),
        pytest.param(
            in_all("judge_started", '"min_effect":0.03', '"min_effect":0.3'),
            "is below min_effect",
            id="min_effect",
        ),
        pytest.param(
            in_all("assignment_ended", '"order_seed":"', '"order_seed":"00'), "coin", id="the coin"
        ),
        pytest.param(in_all("block", '"block":3', '"block":4'), "is missing", id="a block"),
        pytest.param(
            in_all("block", '"dropped":null', '"dropped":"slow"'), "dropped unfairly", id="dropped"
        ),
        pytest.param(in_all("champion_promoted", '"gain":0.2', '"gain":0.3'), "gain is", id="gain"),
        pytest.param(
            in_all("champion_promoted", '"previous":"', '"previous":"0'), "judged on", id="champion"
        ),
    ],
)
def test_a_rig_that_lies_in_its_own_events_fails_its_promotion(
    tmp_path: Path, change: Callable[[sqlite3.Connection], object], why: str
) -> None:
    code, said = verify(doctored(tmp_path, change, resigned))
    assert code == 8
    assert said.startswith("PASS ")
    assert why in said.splitlines()[1]


def test_another_rigs_key_is_a_finding() -> None:
    code, said = verify(PROMOTION, "--rig-key", "A" * 43 + "=")
    assert code == 8
    assert "another one" in said


@pytest.mark.parametrize(
    ("content", "code"),
    [
        pytest.param(None, 3, id="no file"),
        pytest.param(b"", 8, id="empty"),
        pytest.param(b"SQLite format 3\0 and no more", 8, id="no database"),
        pytest.param(b"SQLite format 3\0" + bytes(2000), 8, id="a damaged database"),
        pytest.param(b"[" * 100_000, 8, id="too deep"),
        pytest.param(b'{"format":"thermite.promotion/2"}', 8, id="another version"),
    ],
)
def test_other_files_end_in_words(tmp_path: Path, content: bytes | None, code: int) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    found, said = verify(path)
    assert found == code
    assert said.startswith("FAIL ") == (code == 8)
