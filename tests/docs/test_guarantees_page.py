"""The page of guarantees names tests that exist, and holds only figures that were written by it."""

import ast
import re
from pathlib import Path

import pytest

from benchmarks import faults
from benchmarks.append import Row
from benchmarks.ledger import BEGIN, END, PAGE

TESTS = Path(__file__).parents[1]
TEXT = PAGE.read_text(encoding="utf-8")
PROMISES = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.split("## What each came to")[0].splitlines()
    if line.startswith("| ") and "shown by" not in line
]
ROW = re.compile(
    r"\| .+ \| ≥ \d+\.\d\d \| \d+\.\d\d \| \d+\.\d\d to \d+\.\d\d \| (kept|\*\*missed\*\*) \|"
)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise[0][:60])
def test_each_promise_is_shown_by_tests_that_exist(promise: list[str]) -> None:
    shown = promise[1].split(";")
    assert shown
    for part in shown:
        file, *names = re.findall(r"`([^`]+)`", part)
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        defined = {
            node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        assert names
        assert set(names) <= defined


def test_what_was_measured_says_where_when_and_under_which_load() -> None:
    measured = TEXT.split(BEGIN)[1].split(END)[0].split("\n")
    words = " ".join(line for line in measured if line and not line.startswith("|"))
    if words:
        assert re.search(r"Measured on \d{4}-\d\d-\d\d on \d+ CPUs", words)
        assert "load average" in words
    rows = [line for line in measured if line.startswith("| ") and "| goal |" not in line]
    assert [line for line in rows if ROW.fullmatch(line) is None] == []
    assert bool(rows) == bool(words)


def test_what_was_run_says_of_each_promise_what_it_came_to() -> None:
    run = TEXT.split(faults.BEGIN)[1].split(faults.END)[0]
    told = {line.split(" | ")[0].removeprefix("| ") for line in run.splitlines()[2:]}
    rows = [line for line in run.splitlines() if line.startswith("| ") and "| cases |" not in line]
    assert bool(rows) == ("Run on " in run)
    if rows:
        assert {promise[0] for promise in PROMISES} <= told
        assert [row for row in rows if "held" not in row and "not run here" not in row] == []


@pytest.mark.parametrize(
    ("outcomes", "word"),
    [
        (["passed", "passed"], "held"),
        (["passed", "failed"], "**broken**"),
        (["skipped", "passed"], "held, some parts not run here"),
        (["skipped"], "not run here"),
        ([], "**broken**"),
    ],
)
def test_a_promise_is_held_only_when_each_of_its_tests_passed(
    outcomes: list[str], word: str
) -> None:
    promise = faults.Promise("a promise", (("a/test_b.py", "test_c"),))
    cases = [faults.Case("a/test_b.py", "test_c", outcome, 0.5) for outcome in outcomes]
    other = faults.Case("a/test_other.py", "test_c", "failed", 1.0)
    assert f"| a promise | {len(outcomes)} | {word} |" in faults.line(promise, [*cases, other])


@pytest.mark.parametrize(("floor", "word"), [(0.5, "kept"), (0.51, "**missed**")])
def test_a_missed_goal_is_called_missed(floor: float, word: str) -> None:
    line = Row("a, of b", floor, [0.4, 0.5, 0.6]).line()
    assert ROW.fullmatch(line)
    assert line.endswith(f"| 0.50 | 0.40 to 0.60 | {word} |")
