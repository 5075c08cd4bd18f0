"""The pictures of the page on verdicts are what the tool draws from the committed numbers."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/explanation/how-a-verdict-is-reached.md"
FIGURES = ROOT / "docs/explanation/figures"


def test_the_pictures_are_what_the_tool_draws(tmp_path: Path) -> None:
    tool = ROOT / "tools" / "draw_verdicts.py"
    subprocess.run([sys.executable, str(tool), "--into", str(tmp_path)], check=True)
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert drawn == {path.name: path.read_bytes() for path in FIGURES.glob("*.svg")}
    for text in drawn.values():
        assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"


def test_each_picture_stands_on_the_page() -> None:
    shown = set(re.findall(r"!\[[^\]]+\]\(figures/([^)]+)\)", PAGE.read_text()))
    assert shown == {path.name for path in FIGURES.glob("*.svg")}


def test_the_numbers_say_what_the_page_says_of_them() -> None:
    told = json.loads((FIGURES / "numbers.json").read_text())
    blocks = [(one["gain"], one["result"], len(one["steps"])) for one in told["attempts"]]
    assert blocks == [(0.05, "promoted", 16), (0.0, "not_better", 5), (0.02, "not_better", 5)]
    power = {name: dict(map(tuple, found)) for name, found in told["power"]["0.03"].items()}
    assert 0.3 < power["quiet"][0.03] < 0.7
    assert power["quiet"][0.035] > 0.95
    assert max(power["loaded"].values()) == 0.0
    for name, rules in told["rules"].items():
        crowned = {rule: one["false_champion_campaigns"] for rule, one in rules.items()}
        assert crowned.pop("signflip-2") == 0, name
        if name == "quiet":
            assert crowned.pop("median-of-10") == 0
        assert min(crowned.values()) >= 16, name
