"""The how-to on MCP tools, typed line by line into one shell on a real rig."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.docs.typed_page import typed
from tests.requirement import shows

pytestmark = pytest.mark.measures


@shows("K-075", "K-077", "K-079")
def test_the_page_s_worker_calls_its_tool_and_none_of_the_advisors(tmp_path: Path) -> None:
    said = typed("how-to/give-agents-mcp-tools.md", tmp_path)
    assert "campaign ended (budget: attempts)" in said
    work = tmp_path / "work"
    with closing(sqlite3.connect(work / "copy.db")) as copy:
        rows = copy.execute("select cast(body as text) from events order by seq").fetchall()
    events = [json.loads(body) for (body,) in rows]
    calls = [one for one in events if one["type"] == "tool_called"]
    assert [(one["data"]["tool"], one["data"]["outcome"], one["lane"]) for one in calls] == [
        ("advice", "ok", 0),
        ("secret", "refused", 0),
    ]
    kinds = [one["type"] for one in events]
    assert kinds.index("mcp_servers") < kinds.index("lane_opened")
    assert "loops" in (work / "rig.log").read_text() or calls
