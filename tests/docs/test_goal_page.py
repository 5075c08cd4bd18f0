"""The how-tos on goal and research campaigns, typed line by line into one shell on a real rig."""

import re
from pathlib import Path

import pytest

from tests.docs.typed_page import typed

pytestmark = pytest.mark.measures


def test_people_decide_the_page_s_research_campaign(tmp_path: Path) -> None:
    said = typed("how-to/run-a-research-campaign.md", tmp_path)
    assert re.search(r"^report +goals_met +weight 1 of 1 ", said, re.MULTILINE), said
    assert "campaign ended (goals met)" in said
    assert "all of it follows from the runs" in said


def test_the_page_s_goal_campaign_ends_with_its_goals_met(tmp_path: Path) -> None:
    said = typed("how-to/run-a-goal-campaign.md", tmp_path)
    assert re.search(r"^a-short +goals_unmet +weight 2 of 4 ", said, re.MULTILINE), said
    assert re.search(r"^b-right +goals_met +weight 4 of 4 ", said, re.MULTILINE), said
    assert "campaign ended (goals met)" in said
    assert "b-right is the best: it meets 3 of 3 goals, weight 4 of 4" in said
    assert said.index("a-short: goal any-size unmet") < said.index("a-short: goal fours met")
