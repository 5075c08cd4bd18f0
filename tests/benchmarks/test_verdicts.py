"""The table of verdicts is printed whole, at any size, on models and recordings."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from thermite.judge.simulate.recorded import read_recording

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "verdicts.py"
SIZES = ("campaigns", "gains", "mixed", "held-out")
TINY = [*(f"--{size}=2" for size in SIZES), "--attempts=20", "--noise"]


def table(*argv: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(BENCHMARK), *argv]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_recording_gets_the_whole_table(tmp_path: Path) -> None:
    noise = tmp_path / "noise.json"
    times = [1_000_000 + (n * 7919) % 40_009 for n in range(200)]
    noise.write_text(json.dumps({"schema_version": 1, "what": "a test", "t_ns": times}))
    done = table(*TINY, str(noise), "--seed", "7")
    assert (done.returncode, done.stderr) == (0, "")
    assert "(200 recorded runs: a test), seed 7" in done.stdout
    assert "campaigns of 20 nulls with a promotion, min_effect 0.5 %" in done.stdout
    rules = {line.split()[0] for line in done.stdout.splitlines() if " of 2 " in line}
    assert {"signflip-2", "best-single", "repeat-until-sem", "wilcoxon"} <= rules


@pytest.mark.parametrize(
    "path", sorted(BENCHMARK.parent.glob("noise/*.json")), ids=lambda p: p.stem
)
def test_a_recording_that_we_ship_says_what_it_is(path: Path) -> None:
    found = read_recording(path.read_bytes())
    assert len(found.t_ns) >= 600
    assert "processors" in found.what


def test_noise_that_is_none_is_refused_in_one_line() -> None:
    done = table(*TINY, "loud")
    assert done.returncode == 1
    assert done.stderr == "there is no noise file 'loud': we ship quiet, heavy, loaded\n"


def test_a_size_of_nothing_is_refused() -> None:
    done = table("--campaigns", "0")
    assert (done.returncode, done.stderr) == (
        1,
        "every size must be 1 or more, and --attempts 20 or more\n",
    )
