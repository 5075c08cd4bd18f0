"""Reasons of a decision name the condition that failed, with its own figure."""

import math

import msgspec
import pytest

from tests.judge.verdict.test_rule import ACCURACY, cell_guard, parameters
from thermite.judge.job.outcome import decision
from thermite.judge.verdict.rule import Ruling, decide_confirm, decide_screen
from thermite.judge.verdict.words import decision_reason
from thermite.schema.contract import Judging
from thermite.schema.rule import MeasuredBlock, RuleParameters
from thermite.schema.verdict import JudgeStage


def reason_of(ruling: Ruling, p: RuleParameters, seen: list[MeasuredBlock]) -> str:
    return decision_reason(str(ruling.result), decision(1, 1, seen[0].stage, ruling), p, seen, 1)


def made(stage: JudgeStage, n: int, **effects: float) -> list[MeasuredBlock]:
    return [
        MeasuredBlock(
            stage=stage,
            block=at,
            ln_ratio={
                "speed": {c: math.log1p(d) for c, d in effects.items() if c != "accuracy"},
                "accuracy": {"a": math.log1p(effects.get("accuracy", 0.0))},
            },
            champion_first=dict.fromkeys(effects, bool(at % 2)),
        )
        for at in range(n)
    ]


@pytest.mark.parametrize(
    ("fast", "said"),
    [
        pytest.param(
            "d",
            "held for suspect_gain: cell d by itself gained more than 10 times"
            " (judging.suspect_gain): 12 times as good, measured in 10 blocks"
            " (22.75 % over all cells)",
            id="R9-the cell",
        ),
        pytest.param(
            "h",
            "held for suspect_gain: a held-out cell by itself gained more than 10 times"
            " (judging.suspect_gain), measured in 10 blocks (251.57 % over all cells)",
            id="R9-no name of a held-out cell",
        ),
    ],
)
def test_a_cell_beyond_belief_is_named(fast: str, said: str) -> None:
    cells = list("abcdefg")
    held_out = ["h"] if fast == "h" else ["h", "i"]
    p = parameters(cells=cells, weights=dict.fromkeys(cells, 1 / 7), held_out=held_out)
    gains = dict.fromkeys([*cells, *held_out], 0.03) | {fast: 11.0}
    seen = made("confirm", 10, **gains)
    assert reason_of(decide_confirm([], seen, p, 1), p, seen) == said


def test_a_whole_beyond_belief_names_no_cell() -> None:
    p = parameters()
    seen = made("confirm", 10, a=11.0, b=11.0)
    said = "held for suspect_gain: 1100 % measured in 10 blocks"
    assert reason_of(decide_confirm([], seen, p, 1), p, seen) == said


def test_a_cell_that_pays_is_named_with_its_own_loss() -> None:
    p = parameters(guards=[cell_guard("a"), cell_guard("b")])
    seen = made("screen", 5, a=0.8, b=-0.1)
    assert reason_of(decide_screen(seen, p), p, seen) == (
        "speed in b lost more than 3 %: -10 %, measured in 5 blocks (27.28 % over all cells)"
    )


def test_a_guard_that_is_not_shown_to_hold_is_named() -> None:
    p = parameters(guards=[ACCURACY], judging=Judging(confirm_max_blocks=12))
    seen = made("confirm", 12, a=0.2, b=0.2, accuracy=-0.01)
    assert reason_of(decide_confirm([], seen, p, 1), p, seen) == (
        "a gain of 3 % was not confirmed: guard 1: accuracy was not shown to lose less than 1 %:"
        " -1 %, measured in 12 blocks (20 % over all cells)"
    )


def test_of_held_out_cells_nothing_is_told_but_that_they_lost() -> None:
    p = parameters(held_out=["h"])
    seen = made("confirm", 10, a=0.5, b=0.5, h=-0.2)
    assert reason_of(decide_confirm([], seen, p, 1), p, seen).startswith(
        "the held-out cells lost more than 0.5 %, measured in 10 blocks ("
    )


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        pytest.param(
            (-0.01, 0.02),
            "no gain of 3 % was shown: 1 % [-1 %, 2.02 %] measured in 5 blocks",
            id="interval",
        ),
        pytest.param(
            (None, None),
            "no gain of 3 % was shown: 1 % (1 % to 1 %) measured in 5 blocks",
            id="too few blocks for one",
        ),
    ],
)
def test_a_gain_that_was_not_shown_is_told_with_how_sure_it_is(
    bounds: tuple[float | None, float | None], said: str
) -> None:
    p = parameters()
    seen = made("screen", 5, a=0.01, b=0.01)
    ruling = msgspec.structs.replace(decide_screen(seen, p), lcb=bounds[0], ucb=bounds[1])
    assert reason_of(ruling, p, seen) == said


def test_a_gain_without_enough_evidence_says_so() -> None:
    p = parameters(judging=Judging(confirm_min_blocks=2, confirm_max_blocks=2))
    seen = made("confirm", 2, a=0.2, b=0.2)
    assert reason_of(decide_confirm([], seen, p, 1), p, seen) == (
        "a gain of 3 % was not confirmed: 20 % (20 % to 20 %) measured in 2 blocks,"
        " too little evidence"
    )
