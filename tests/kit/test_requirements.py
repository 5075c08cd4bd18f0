"""Every numbered rule of a kit has a test that carries its number, or a reason why not."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NUMBER = re.compile(r"(?<![A-Za-z0-9])K[-_](\d{3})|(?<![A-Za-z0-9])D(\d{2})(?![0-9A-Za-z])")
WHOLE = HERE.joinpath("requirements.txt").read_text(encoding="ascii").split()
NOT_YET = dict(
    line.split(" ", 1)
    for line in HERE.joinpath("not_yet.txt").read_text(encoding="utf-8").splitlines()
)


@pytest.fixture(scope="module")
def shown() -> set[str]:
    """The numbers in the ids of all tests, as pytest itself lists them."""
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    ids = [line.partition("::")[2] for line in listed.splitlines()]
    found = [pair for one in ids for pair in NUMBER.findall(one)]
    return {f"K-{rule}" if rule else f"D{decision}" for rule, decision in found}


def test_every_rule_has_a_test_that_carries_its_number(shown: set[str]) -> None:
    assert sorted(set(WHOLE) - set(NOT_YET) - shown) == []


def test_no_test_carries_a_number_that_no_rule_has(shown: set[str]) -> None:
    assert sorted(shown - set(WHOLE)) == []


def test_what_is_tested_is_not_put_off(shown: set[str]) -> None:
    assert sorted(set(NOT_YET) & shown) == []


def test_the_lists_are_in_order_and_give_reasons() -> None:
    assert sorted(set(WHOLE)) == WHOLE
    assert all(NUMBER.fullmatch(number) for number in WHOLE)
    assert set(NOT_YET) < set(WHOLE)
    assert all(len(reason) > len("not yet") for reason in NOT_YET.values())
