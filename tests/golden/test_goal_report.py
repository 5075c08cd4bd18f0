"""Goal reports, to the letter: seed texts, shortenings, the contract's order."""

import pytest

from tests.golden.make_goal_report import FOLDER, LONG, assignment, reports
from tests.requirement import shows


@shows("K-063", "K-064", "K-164")
@pytest.mark.parametrize("name", ["operator.txt", "worker.md"])
def test_a_goal_report_is_its_golden_file(name: str) -> None:
    assert reports()[name] == (FOLDER / name).read_text()


def test_the_worker_reads_no_reason_of_the_hidden_pass() -> None:
    text = (FOLDER / "worker.md").read_text()
    assert "0.61" not in text
    assert "In the hidden pass: 1 of 4 goals is unmet." in text
    assert LONG not in text


def test_the_operator_reads_every_reason() -> None:
    text = (FOLDER / "operator.txt").read_text()
    assert "on held-out cells: 20 runs, median 0.61 against 0.5" in text
    assert LONG in text
    assert len(assignment().contract.goals) == 4
