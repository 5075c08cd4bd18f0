"""Tables for people with SQL: they say what the events say, and can be made anew at any time."""

import json
import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlite_utils
from click.testing import CliRunner
from sqlite_utils.cli import cli as sqlite_utils_cli

from tests.ledger.facts import Facts
from thermite.cli.root import run
from thermite.errors import LedgerError
from thermite.ledger.append import Ledger
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


def test_a_ledger_is_no_views_file(judged: Path) -> None:
    with pytest.raises(LedgerError, match="is no views file"):
        renew(judged, judged)


def test_the_ledger_itself_answers_the_question_of_the_documents(judged: Path) -> None:
    query = "SELECT json_extract(body, '$.data.servers') FROM events WHERE type = 'mcp_servers'"
    with closing(sqlite3.connect(f"file:{judged}?immutable=1", uri=True)) as connection:
        assert connection.execute(query).fetchall() == [("[]",)]


def test_the_page_lists_every_table_and_column() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/ledger.md").read_text()
    for name, (_, columns) in TABLES.items():
        line = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert all(f"`{column}`" in line for column in columns)


def test_the_pages_sqlite_utils_queries_run(judged: Path, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/reference/ledger.md").read_text()
    renew(judged, tmp_path / "views.db")
    shutil.copy(judged, tmp_path / "ledger-copy.db")
    lines = [line for line in page.splitlines() if line.startswith("sqlite-utils ")]
    assert len(lines) == 2
    for line in lines:
        program, *words = shlex.split(line)
        found = CliRunner().invoke(sqlite_utils_cli, words_in(tmp_path, words))
        assert (program, found.exit_code) == ("sqlite-utils", 0), found.output
        assert json.loads(found.output)


def words_in(folder: Path, words: list[str]) -> list[str]:
    return [str(folder / words[0]), *words[1:]]


def test_the_command_makes_them(judged: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ledger", "views", str(judged.parent), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["events"], told["file"]) == (419, str(judged.with_name("views.db")))
