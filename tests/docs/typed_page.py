"""A page's lines, typed one by one into one shell on a real rig, as a newcomer does."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def typed(page: str, tmp_path: Path) -> str:
    """Type the shell blocks of a page below docs/ and return what they printed."""
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "thermite"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m thermite "$@"\n')
    command.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    blocks = "\n".join(SHELL.findall((ROOT / "docs" / page).read_text()))
    # Job control as in a terminal, and no rig is left behind when a step fails.
    script = f"set -eu; set -m\ntrap 'kill %1 2>/dev/null || true; wait' EXIT\n{blocks}\nwait\n"
    kept = {"THERMITE_SELFTEST"}  # short, as for all tests: a newcomer's takes 40 blocks
    env = {k: v for k, v in os.environ.items() if k in kept or not k.startswith("THERMITE_")}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=work,
        env={**env, "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=570,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
