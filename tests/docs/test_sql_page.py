"""The reference's questions in SQL: each is asked as it stands, and answered."""

import json
import re
import shlex
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlite_utils.cli import cli as sqlite_utils

from thermite.cli.root import run

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/ledger.md").read_text(encoding="utf-8")
GOLDEN = ROOT / "tests/golden/promotion/ledger.db"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the page's commands work on, made by the page's commands."""
    folder = tmp_path_factory.mktemp("sql")
    (folder / "rig").mkdir()
    shutil.copy(GOLDEN, folder / "rig" / "ledger.db")
    made = [line for line in PAGE.splitlines() if line.startswith("thermite ledger ")]
    for line in [*made, "thermite ledger views ledger-copy.db -o views.db"]:
        assert run([in_folder(folder, word) for word in shlex.split(line)[1:]]) == 0, line
    return folder


def in_folder(folder: Path, word: str) -> str:
    is_file = word == "rig/" or word.endswith((".db", ".jsonl"))
    return str(folder / word) if is_file else word


def asked(program: str) -> list[list[str]]:
    """The words behind a program's name in each of its lines with a question."""
    lines = [shlex.split(line) for line in PAGE.splitlines() if line.startswith(f"{program} ")]
    return [words[1:] for words in lines if len(words) == 3]


def test_sqlite3_answers(folder: Path) -> None:
    """By Python's module everywhere, and by the program where it is installed."""
    questions = asked("sqlite3")
    assert [name for name, _ in questions] == ["ledger-copy.db", "views.db"]
    for name, question in questions:
        with closing(sqlite3.connect(folder / name)) as file:
            rows = file.execute(question).fetchall()
        assert rows in ([(3, "[]")], [(154,)])
        if (program := shutil.which("sqlite3")) is not None:
            done = subprocess.run(
                [program, folder / name, question], capture_output=True, text=True, check=True
            )
            assert done.stdout == "|".join(str(value) for value in rows[0]) + "\n"


def test_sqlite_utils_answers(folder: Path) -> None:
    questions = asked("sqlite-utils")
    assert len(questions) == 2
    told = []
    for name, question in questions:
        found = CliRunner().invoke(sqlite_utils, [str(folder / name), question])
        assert found.exit_code == 0, found.output
        told.append(json.loads(found.output))
    assert list(told[0][0].values()) == [3, "[]"]
    assert told[1][0] == {"proposal": "01-fast", "result": "promoted"}


def test_the_lines_for_duckdb_hold_what_it_is_asked_for(folder: Path) -> None:
    """DuckDB itself is not here; the paths that its question names lead to what it says."""
    lines = (folder / "events.jsonl").read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    block = PAGE[PAGE.index("duckdb -c") : PAGE.index("where event ->> ")]
    (path,) = re.findall(r"event -> '\$\.([a-z.]+)'", block)
    found = []
    for one in events:
        if one["event"]["type"] == "mcp_servers":
            value = one["event"]
            for step in path.split("."):
                value = value[step]
            found.append((one["seq"], value))
    assert found == [(3, [])]
