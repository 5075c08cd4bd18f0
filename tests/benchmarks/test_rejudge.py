"""The benchmark of judging again makes a ledger from which everything follows."""

import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "rejudge.py"


def test_it_prints_both_sides_and_nothing_differs() -> None:
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), "400"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert ", 0 differences" in done.stdout
    assert "reading alone " in done.stdout
    assert "asked <= 5 s" in done.stdout
