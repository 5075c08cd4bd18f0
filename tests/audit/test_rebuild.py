"""What is derived from a ledger is made anew, and every value that differs is named."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tests.ledger.facts import Facts
from thermite.audit.fold import state_at
from thermite.audit.rebuild import rebuild
from thermite.cli.root import run
from thermite.errors import LedgerError
from thermite.harness.trust import write_cache
from thermite.ledger.append import Ledger
from thermite.ledger.views import TABLES, renew
from thermite.schema.rebuilt import MOST_MISMATCHES

PROMOTION = Path(__file__).parents[1] / "golden/promotion/ledger.db"
FOREVER = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ledger = Path(shutil.copy(PROMOTION, tmp_path / "ledger.db"))
    renew(ledger, tmp_path / "views.db")
    write_cache(tmp_path, state_at(ledger), group=None)
    return tmp_path


def told(folder: Path) -> list[tuple[str, str, str]]:
    found = rebuild(folder / "ledger.db")
    return [(one.file, one.place, one.key) for one in found.mismatches]


def test_what_follows_from_the_events_is_found_whole(folder: Path) -> None:
    found = rebuild(folder / "ledger.db")
    assert (found.compared, found.mismatches) == (["views.db", "trust.json"], [])
    with closing(sqlite3.connect(folder / "views.db")) as file:
        counts = [file.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in TABLES]
    assert found.rows == sum(counts) > 200


def test_tables_that_are_behind_are_compared_up_to_their_end(
    ledger: Ledger, facts: Facts, path: Path
) -> None:
    events = facts.campaign()
    ledger.append(events[:3])
    renew(path, path.with_name("views.db"))
    ledger.append(events[3:])
    found = rebuild(path)
    assert (found.compared, found.mismatches) == (["views.db"], [])


@pytest.mark.parametrize("table", [name for name in TABLES if name != "projection"])
def test_every_value_of_every_table_counts(folder: Path, table: str) -> None:
    """One at a time: another value, a missing row, a row too many."""
    views, (key, columns) = folder / "views.db", TABLES[table]
    whole = views.read_bytes()
    with closing(sqlite3.connect(views)) as file:
        has_rows = file.execute(f"SELECT count(*) FROM {table}").fetchone()[0] > 0
    first = f"rowid = (SELECT min(rowid) FROM {table})"
    changes = {
        f"{table}.{column}": f"UPDATE {table} SET \"{column}\" = 'canary' WHERE {first}"
        for column in columns
        if column not in key and has_rows
    }
    values = ", ".join("7" for _ in columns)
    changes[table] = f"INSERT INTO {table} VALUES ({values})"
    if has_rows:
        changes[f"{table} "] = f"DELETE FROM {table} WHERE {first}"
    for place, change in changes.items():
        views.write_bytes(whole)
        with closing(sqlite3.connect(views)) as file:
            file.execute(change)
            file.commit()
        assert [at for _, at, _ in told(folder)] == [place.strip()], change


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        pytest.param(["DROP TABLE runs"], "runs", id="no table"),
        pytest.param(
            ["DROP TABLE runs", f"CREATE VIEW runs AS {FOREVER}"], "runs", id="endless view"
        ),
        pytest.param(
            ["ALTER TABLE runs RENAME COLUMN flags TO words"], "runs", id="another column"
        ),
        pytest.param(["DELETE FROM projection"], "projection", id="no end"),
        pytest.param(["UPDATE projection SET seq = 5000"], "projection", id="ahead"),
        pytest.param(["UPDATE projection SET seq = 'x'"], "projection", id="no number"),
        pytest.param(["UPDATE projection SET head = 'x'"], "projection", id="another history"),
        pytest.param(["UPDATE projection SET version = 9"], "projection", id="another version"),
    ],
)
def test_tables_of_another_form_or_history_are_one_mismatch(
    folder: Path, changes: list[str], place: str
) -> None:
    with closing(sqlite3.connect(folder / "views.db")) as file:
        for change in changes:
            file.execute(change)
        file.commit()
    assert told(folder) == [("views.db", place, "")]


def test_many_differences_are_counted_and_not_all_listed(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "views.db")) as file:
        file.execute("UPDATE runs SET flags = 'x', outcome = 'y'")
        file.commit()
    found = rebuild(folder / "ledger.db")
    assert (len(found.mismatches), found.unlisted > 0) == (MOST_MISMATCHES, True)


@pytest.mark.parametrize("name", ["views.db", "trust.json"])
@pytest.mark.parametrize(
    "put",
    [
        pytest.param(os.mkfifo, id="pipe"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), id="link"),
        pytest.param(lambda path: path.mkdir(), id="folder"),
        pytest.param(lambda path: path.write_bytes(b"SQLite format 3\0" * 400), id="noise"),
    ],
)
def test_what_is_no_such_file_ends_in_words(
    folder: Path, name: str, put: Callable[[Path], object]
) -> None:
    (folder / name).unlink()
    put(folder / name)
    if name == "trust.json":
        assert told(folder) == [("trust.json", "file", "")]
        return
    with pytest.raises(LedgerError, match=r"can't be read|plain file"):
        rebuild(folder / "ledger.db")


@pytest.mark.parametrize("name", ["views.db", "views.db-wal"])
def test_tables_far_larger_than_their_ledger_are_not_copied(folder: Path, name: str) -> None:
    with (folder / name).open("ab") as file:
        file.truncate(1 << 40)  # a hole: a terabyte that takes no room until it is copied
    with pytest.raises(LedgerError, match="1099511627776 bytes"):
        rebuild(folder / "ledger.db")


def test_a_trust_that_the_events_do_not_give_is_named(folder: Path) -> None:
    cache = json.loads((folder / "trust.json").read_bytes())
    key = {"id": "e" * 32, "public": "AA", "label": "x", "roles": ["root"]}
    (folder / "trust.json").write_bytes(
        msgspec.json.encode(cache | {"version": 7, "keys": [*cache["keys"], key]})
    )
    assert told(folder) == [
        ("trust.json", "version", ""),
        ("trust.json", "keys", "e" * 32),
    ]


def test_the_command_says_what_differs_and_changes_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", str(folder), "--rebuild"]) == 0
    assert "all of it follows from the events\n" in capsys.readouterr().out
    with closing(sqlite3.connect(folder / "views.db")) as file:
        file.execute("UPDATE verdicts SET verdict = 'promoted'")
        file.commit()
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert run(["audit", str(folder), "--rebuild", "--json"]) == 8
    (mismatch,) = json.loads(capsys.readouterr().out)["rebuilt"]["mismatches"]
    assert (mismatch["place"], mismatch["stands"]) == ("verdicts.verdict", "promoted")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_changed_ledger_is_a_finding_before_anything_is_made(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(sqlite3.connect(folder / "ledger.db")) as file:
        file.execute("DROP TRIGGER events_no_update")
        file.commit()
    assert run(["audit", str(folder), "--rebuild", "--json"]) == 8
    assert json.loads(capsys.readouterr().out)["rebuilt"]["compared"] == []
