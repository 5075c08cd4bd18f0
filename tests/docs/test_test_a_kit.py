"""The how-to "Test a kit with known candidates", followed as a reader would."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from thermite.kit.doubts import doubts
from thermite.kit.examine import examine
from thermite.schema.expectation import Expectation

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/test-a-kit.md").read_text()
BLOCK = re.compile(r"(?:^`([\w./-]+)`\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `(?:\[\[)?(\w+)(?:\]\])?` \|", re.MULTILINE)


def typed(script: str, folder: Path) -> str:
    """Return what a shell prints for some lines of the page."""
    done = subprocess.run(
        ["sh", "-eu", "-c", script],
        cwd=folder,
        env={
            "PATH": f"{folder}/tools:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "THERMITE_ISOLATION": "none",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def smaller(manifest: Path) -> None:
    """Make the cells smaller: what is followed here is the page, not the clock."""
    kit = json.loads(manifest.read_text())
    for cell in kit["cells"].values():
        cell["count"] //= 4
    manifest.write_text(json.dumps(kit))


@pytest.mark.timeout(1500)  # three times a kit's selftest, on a machine that may be busy
def test_the_page_can_be_followed_from_top_to_bottom(tmp_path: Path) -> None:
    tool = tmp_path / "tools" / "thermite"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m thermite "$@"\n')
    tool.chmod(0o755)
    printed = ""
    for name, kind, text in BLOCK.findall(PAGE):
        if kind == "sh":
            made = "kit new" in text
            for lines in text.splitlines(keepends=True) if made else [text]:
                printed = typed(lines, tmp_path)
                if "kit new" in lines:
                    smaller(tmp_path / "sort-c" / "kit.json")
        elif kind == "text":
            shown = ".*".join(re.escape(piece.strip("\n")) for piece in text.split("..."))
            assert re.search(shown, printed, re.DOTALL), printed
        elif name.startswith("kits/"):
            assert (ROOT / name).read_text() == text
        else:
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    kit = tmp_path / "sort-c"
    found = examine(kit)
    assert found.problems == []
    assert found.kit is not None
    assert doubts(found.kit, kit) == []


def test_the_page_has_every_field_of_an_expectation() -> None:
    assert set(Expectation.__struct_fields__) <= set(ROW.findall(PAGE))
