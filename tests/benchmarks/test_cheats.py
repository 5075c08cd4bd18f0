"""The same cheats fool other harnesses' rules and not Thermite: the short form of the table."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ["not_better", "regressed", "invalid", "not_confirmed"]


def table(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "benchmarks/cheats.py", "--markdown", *argv],
        cwd=ROOT,
        env={**os.environ, "THERMITE_ISOLATION": "none"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.measures
def test_what_fools_a_peer_everywhere_is_not_crowned_here() -> None:
    done = table()
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    head, rule, *rows = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in done.stdout.splitlines()
        if line.startswith("|")
    ]
    assert (head[-1], rule[-1]) == ("Thermite", "---")
    crowned = {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}
    own = crowned["Stops the clocks of its own process."]
    assert own["timer in its process"] == "CROWNED"
    assert own["mean of 8 pairs"] == "luck"
    answers = crowned["Looks for the judge's answers and copies them."]
    # The first column is a single time, which another program's burst can spoil.
    assert list(answers.values())[1:-1] == ["CROWNED"] * 4
    assert {cells["Thermite"] for cells in crowned.values()} <= set(OURS)


def test_an_unknown_candidate_is_named() -> None:
    done = table("--only", "nobody")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("no candidate nobody: there are faster, slower, ")
