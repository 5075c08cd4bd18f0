"""The how-tos on goal and research campaigns, typed line by line into one shell on a real rig."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.measures

ROOT = Path(__file__).parents[2]
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def typed(page: str, tmp_path: Path) -> str:
    """Type a page's lines into a shell and return what it printed."""
    text = (ROOT / "docs/how-to" / page).read_text()
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "thermite"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m thermite "$@"\n')
    command.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    blocks = "\n".join(SHELL.findall(text))
    # Job control as in a terminal, and no rig is left behind when a step fails.
    script = f"set -eu; set -m\ntrap 'kill %1 2>/dev/null || true; wait' EXIT\n{blocks}\nwait\n"
    env = {k: v for k, v in os.environ.items() if not k.startswith("THERMITE_")}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=work,
        env={**env, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_people_decide_the_page_s_research_campaign(tmp_path: Path) -> None:
    said = typed("run-a-research-campaign.md", tmp_path)
    assert re.search(r"^report +goals_met +weight 1 of 1 ", said, re.MULTILINE), said
    assert "campaign ended (goals met)" in said
    assert "all of it follows from the runs" in said


def test_the_page_s_goal_campaign_ends_with_its_goals_met(tmp_path: Path) -> None:
    said = typed("run-a-goal-campaign.md", tmp_path)
    assert re.search(r"^a-short +goals_unmet +weight 2 of 4 ", said, re.MULTILINE), said
    assert re.search(r"^b-right +goals_met +weight 4 of 4 ", said, re.MULTILINE), said
    assert "campaign ended (goals met)" in said
    assert "b-right is the best: it meets 3 of 3 goals, weight 4 of 4" in said
    assert said.index("a-short: goal any-size unmet") < said.index("a-short: goal fours met")
