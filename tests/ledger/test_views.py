"""Tables for people with SQL: they say what the events say, and can be made anew at any time."""

import json
import os
import shutil
import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import sqlite_utils

from tests.ledger.facts import Facts
from thermite.cli.root import run
from thermite.errors import LedgerError
from thermite.ledger.append import Ledger
from thermite.ledger.backup import back_up
from thermite.ledger.views import TABLES, renew

PROMOTION = Path(__file__).parents[1] / "golden/promotion/ledger.db"


def asked(path: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def dump(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    return Path(shutil.copy(PROMOTION, tmp_path / "ledger.db"))


def test_a_campaign_is_told_in_tables(judged: Path, tmp_path: Path) -> None:
    views = tmp_path / "views.db"
    assert renew(judged, views) == 419
    assert asked(views, "SELECT name, campaign, reason FROM assignments") == [
        ("walk", "hill_climb", "nothing left to propose")
    ]
    assert asked(views, "SELECT attempt, proposal, result FROM attempts ORDER BY attempt") == [
        (1, "01-fast", "promoted"),
        (2, "02-same", "not_better"),
    ]
    assert asked(views, "SELECT count(*), sum(dropped IS NULL) FROM blocks WHERE attempt = 1") == [
        (16, 16)
    ]
    assert asked(views, "SELECT round(gain, 2) FROM promotions JOIN verdicts USING (gain)") == [
        (0.25,)
    ]
    assert asked(views, "SELECT min(t_ns) > 0 FROM runs") == [(1,)]
    assert set(sqlite_utils.Database(views).table_names()) == set(TABLES)


def test_tables_that_are_behind_are_brought_up_to_date(
    ledger: Ledger, facts: Facts, path: Path, tmp_path: Path
) -> None:
    views, at_once = tmp_path / "views.db", tmp_path / "at_once.db"
    assert renew(path, views) == 1
    for event in facts.campaign():
        ledger.append([event])
        renew(path, views)
    ledger.append([facts.refused()])
    assert renew(path, views) == renew(path, at_once) == ledger.size
    assert dump(views) == dump(at_once)
    assert asked(views, "SELECT outcome, code FROM commands ORDER BY seq") == [
        ("accepted", None),
        ("refused", "wrong_rig"),
    ]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("UPDATE projection SET head = 'x'", id="another history"),
        pytest.param("UPDATE projection SET version = 0", id="another version"),
        pytest.param("UPDATE projection SET seq = 1000", id="ahead of the ledger"),
        pytest.param("DELETE FROM projection", id="half made"),
    ],
)
def test_tables_of_another_history_are_made_anew(judged: Path, tmp_path: Path, change: str) -> None:
    views = tmp_path / "views.db"
    renew(judged, views)
    true = dump(views)
    with closing(sqlite3.connect(views)) as connection:
        connection.execute("UPDATE verdicts SET verdict = 'promoted'")
        connection.execute(change)
        connection.commit()
    assert renew(judged, views) == 419
    assert dump(views) == true


@pytest.mark.parametrize("content", [b"my notes\n" * 200, b"SQLite format 3\0" + bytes(2000)])
def test_another_file_is_never_written_over(judged: Path, tmp_path: Path, content: bytes) -> None:
    other = tmp_path / "other"
    other.write_bytes(content)
    with pytest.raises(LedgerError, match="is no views file"):
        renew(judged, other)
    assert other.read_bytes() == content


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        *product(
            ["", "-wal", "-shm", "-journal", ".new", ".new-journal"],
            ["fifo", "link", "dangling", "notes", "two names"],
        ),
        ("", "empty"),
    ],
)
def test_what_is_no_plain_file_of_ours_is_left_alone(
    judged: Path, tmp_path: Path, ending: str, kind: str
) -> None:
    views, elsewhere = tmp_path / "views.db", tmp_path / "elsewhere"
    if ending in {"-wal", "-shm", "-journal"}:
        renew(judged, views)
    if kind != "dangling":
        renew(judged, elsewhere)
    odd = tmp_path / f"views.db{ending}"
    _make_odd(odd, kind, elsewhere)
    before = odd.lstat()
    with pytest.raises(LedgerError, match=r"is no|is not of"):
        renew(judged, views)
    assert (odd.lstat().st_ino, odd.lstat().st_mode) == (before.st_ino, before.st_mode)


def test_another_database_under_the_unfinished_files_name_is_kept(
    judged: Path, tmp_path: Path
) -> None:
    mine = Path(shutil.copy(PROMOTION, tmp_path / "views.db.new"))
    with pytest.raises(LedgerError, match="no views file that a kill left"):
        renew(judged, tmp_path / "views.db")
    assert mine.read_bytes() == PROMOTION.read_bytes()


def _make_odd(odd: Path, kind: str, elsewhere: Path) -> None:
    match kind:
        case "fifo":
            os.mkfifo(odd)
        case "link" | "dangling":
            odd.symlink_to(elsewhere)
        case "two names":
            odd.hardlink_to(elsewhere)
        case _:
            odd.write_bytes(b"my notes" * (kind == "notes"))


def test_a_views_file_whose_tables_somebody_changed_ends_in_words(
    ledger: Ledger, facts: Facts, path: Path, tmp_path: Path
) -> None:
    views = tmp_path / "views.db"
    renew(path, views)
    with closing(sqlite3.connect(views)) as connection:
        connection.execute("ALTER TABLE commands RENAME COLUMN code TO word")
    ledger.append([facts.refused()])
    with pytest.raises(LedgerError, match="remove it, and it is made anew"):
        renew(path, views)


def test_a_name_of_the_ledgers_own_files_is_no_target(judged: Path) -> None:
    with pytest.raises(LedgerError, match="belongs to the ledger"):
        renew(judged, judged.with_name("ledger.db-wal"))
    assert not judged.with_name("ledger.db-wal").exists()


def test_a_link_is_no_target_of_a_backup(judged: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.db").symlink_to(tmp_path / "gone")
    with pytest.raises(LedgerError, match="there is a file"):
        back_up(judged, tmp_path / "copy.db")
    assert (tmp_path / "copy.db").is_symlink()


def test_a_ledger_is_no_views_file(judged: Path) -> None:
    with pytest.raises(LedgerError, match="is no views file"):
        renew(judged, judged)


def test_the_page_lists_every_table_and_column() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/ledger.md").read_text()
    for name, (_, columns) in TABLES.items():
        line = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert all(f"`{column}`" in line for column in columns)


def test_the_command_makes_them(judged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "views", str(judged.parent), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["events"], told["file"]) == (419, str(judged.with_name("views.db")))
