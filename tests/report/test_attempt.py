"""An attempt in words: evidence as odds that a person can weigh."""

import math

import pytest

from thermite.report.attempt import counted, evidence


@pytest.mark.parametrize(
    ("ln_e", "words"),
    [
        pytest.param(-8.234, "ln E -8.23: no evidence of a gain", id="against"),
        pytest.param(0.5, "ln E 0.50: no evidence of a gain", id="less than even"),
        pytest.param(
            math.log(50) + 1e-9,
            "ln E 3.91: luck alone gets so far at most once in 50",
            id="what a screen asks for",
        ),
        pytest.param(
            13.0, "ln E 13.00: luck alone gets so far at most once in 442,413", id="thousands"
        ),
        pytest.param(
            300.0, "ln E 300.00: luck alone gets so far at most once in 10^130", id="huge"
        ),
        pytest.param(
            1e5, "ln E 100000.00: luck alone gets so far at most once in 10^43429", id="more"
        ),
    ],
)
def test_evidence_is_told_as_odds_and_never_better_than_it_is(ln_e: float, words: str) -> None:
    assert evidence(ln_e) == words


def test_one_is_one() -> None:
    assert [counted(number, "try", "tries") for number in (0, 1, 2)] == [
        "0 tries",
        "1 try",
        "2 tries",
    ]
    assert counted(1, "block") == "1 block"
