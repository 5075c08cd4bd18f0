"""`thermite demo` as a newcomer runs it: the whole job, for real."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from thermite.cli.demo import worth_seeing
from thermite.cli.demo_steps import Steps
from thermite.cli.output import Output

pytestmark = pytest.mark.measures

NO_GAIN = {"not_better", "regressed", "not_confirmed"}
"""Luck may carry what gains nothing through the screen: confirm is there to refuse it."""
FAILING = {
    "01-broken": {"invalid"},
    "02-wrong-edge": {"invalid"},
    "03-forges": {"invalid"},
    "04-escapes": {*NO_GAIN, "crash_candidate"},
    "05-hangs": {"crash_candidate"},
    "06-lingers": NO_GAIN,
    "07-slower": {"not_better", "regressed"},
    "08-comment-only": {"not_better"},
    "09-moved-code": NO_GAIN,
}
GAINS = {"10-loop-order", "11-blocked"}


def demo(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "thermite", "demo", *args]
    root = Path(__file__).parents[2]
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "PYTHONPATH": str(root)}
    return subprocess.run(
        argv, capture_output=True, text=True, cwd=cwd, env=env, timeout=590, check=False
    )


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("demo")
    ran = demo("--json", cwd=folder)
    told: dict[str, Any] = json.loads(ran.stdout)
    assert ran.returncode == (0 if told["ok"] else 1), ran.stderr
    return folder / "thermite-demo", told


def test_what_must_fail_fails_and_true_gains_win(done: tuple[Path, dict[str, Any]]) -> None:
    _, told = done
    verdicts = told["verdicts"]
    assert set(verdicts) == {*FAILING, *GAINS}
    for name, allowed in FAILING.items():
        assert verdicts[name] in allowed, name
    # A rig whose runs can't be kept from other work may be unable to tell; it never tells a lie.
    is_calm = told["rig"] != "noisy" or "realtime" in told["features"]
    for name in GAINS:
        unsure = set() if is_calm else {"not_better", "not_confirmed"}
        assert verdicts[name] in {"promoted", *unsure}, name


def test_its_ledger_audits_clean_and_names_its_champion(done: tuple[Path, dict[str, Any]]) -> None:
    folder, told = done
    assert told["audit"]["findings"] == 0
    assert Path(told["ledger"]) == folder / "rig/ledger.db"
    if "promoted" in told["verdicts"].values():
        assert len(told["champion"]) == 40
        assert told["gain"] > 0.2
        assert told["interval"][0] < told["gain"] < told["interval"][1]


def test_what_it_names_to_see_next_works_where_it_was_run(
    done: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(done[0].parent)
    output = Output(as_json=False, quiet=True, out=io.StringIO(), err=io.StringIO())
    named = [command for command, _ in worth_seeing(Steps(output, done[0]))]
    assert [command.split(" --state")[0].split()[-1] for command in named][:2] == ["report", "10"]
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2])}
    for command in named:
        assert subprocess.run(["sh", "-c", command], env=env, check=False).returncode == 0, command
    assert Path("demo.html").is_file()


def test_the_commands_that_judge_again_find_kit_and_candidate(
    done: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    """All but the last are run, which would take as long as a verdict takes."""
    show = [sys.executable, "-m", "thermite", "show", "10-loop-order", "--repro"]
    said = subprocess.check_output([*show, "--state", done[0] / "rig"], text=True)
    *fetch, judge = said.splitlines()
    subprocess.run(["sh", "-c", "\n".join(fetch)], cwd=tmp_path, check=True)
    given = Path(__file__).parents[2] / "kits/demo-cpu"
    wanted = given / "candidates/10-loop-order/files/matmul.c"
    made = next(tmp_path.glob("attempt-10-*"))
    assert (made / "project/matmul.c").read_bytes() == wanted.read_bytes()
    assert (made / "kit/kit.json").read_bytes() == (given / "kit.json").read_bytes()
    assert " judge project --kit kit --champion " in judge


def test_an_earlier_demo_is_replaced_and_nobody_elses_folder(
    done: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    folder, _ = done
    assert (folder / ".thermite-demo.json").exists()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    refused = demo(str(mine), cwd=tmp_path)
    assert refused.returncode == 5
    assert "is not empty and no earlier demo" in refused.stderr
    assert (mine / "thesis.txt").read_text() == "years of work"


def test_a_demo_that_still_runs_is_not_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    sleeper = subprocess.Popen(["sleep", "60"])
    try:
        started = psutil.Process(sleeper.pid).create_time()
        mark = json.dumps({"pid": sleeper.pid, "started": started})
        (folder / ".thermite-demo.json").write_text(mark)
        refused = demo(str(folder), cwd=tmp_path)
        assert refused.returncode == 5
        assert "is still running" in refused.stderr
    finally:
        sleeper.kill()
        sleeper.wait()
