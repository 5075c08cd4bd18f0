"""The tutorial "Your first campaign", typed line by line into one shell, as a newcomer does."""

import re
from pathlib import Path

import pytest

from tests.docs.typed_page import typed

pytestmark = pytest.mark.measures


def test_the_tutorial_works_as_it_stands(tmp_path: Path) -> None:
    said = typed("tutorial/first-campaign.md", tmp_path)
    assert re.search(r"^a-cheat +invalid ", said, re.MULTILINE), said
    found = re.search(r"^loop-order +(\w+) ", said, re.MULTILINE)
    assert found is not None, said
    # On a machine with other work the rig calls itself noisy, and may be unable to tell.
    is_noisy = "this rig is noisy" in said
    assert found[1] in {"promoted", *(["not_better", "not_confirmed"] if is_noisy else [])}
    assert "clean" in said
