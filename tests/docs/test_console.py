"""What a page shows of a console is what a console shows.

In a block marked `console`, each line after `$ ` is typed into one bash, in a new folder for
each page, and the lines after it must be in what it prints, in that order. A line `...` stands
for any others, also within a line.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MARK = "@@@"


def steps_of(page: Path) -> list[tuple[str, list[str]]]:
    """Return the commands of a page, each with the lines that the page shows after it."""
    steps: list[tuple[str, list[str]]] = []
    for block in BLOCK.findall(page.read_text()):
        for line in block.splitlines():
            if line.startswith("$ "):
                steps.append((line[2:], []))
            else:
                steps[-1][1].append(line)
    return steps


def script_of(steps: list[tuple[str, list[str]]]) -> str:
    """Return a script that marks each command's output and hands `$?` on to the next one."""
    return "\n".join(f"code=$?; echo; echo {MARK}; (exit $code)\n{command}" for command, _ in steps)


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if steps_of(page)],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_console_shows_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "thermite").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m thermite "$@"\n')
    (tools / "thermite").chmod(0o755)
    folder = tmp_path / "here"
    folder.mkdir()
    steps = steps_of(page)
    done = subprocess.run(
        ["bash", "-c", script_of(steps)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        env={
            "PATH": f"{tools}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(tmp_path),
            "LANG": "C.UTF-8",
        },
        check=False,
        timeout=500,
    )
    seen = done.stdout.split(f"\n{MARK}\n")[1:]
    for (command, shown), output in zip(steps, seen, strict=True):
        pattern = ".*".join(re.escape(piece) for piece in "\n".join(shown).split("..."))
        assert re.search(pattern, output, re.DOTALL), f"$ {command}\n{output}"
