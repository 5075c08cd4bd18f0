"""The coin: the golden orders of the page on judging, 3.1, and its fairness."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thermite.judge.verdict.coin import commitment, draw_order, order_seed
from thermite.schema.verdict import JudgeStage

COIN_KEY = bytes(range(32))
PAYLOAD_HASH = bytes(range(32, 64))
SEED = order_seed(COIN_KEY, PAYLOAD_HASH)
CELLS = ["small", "large", "held"]


def test_seed_is_the_documents_to_the_digit() -> None:
    assert SEED.hex() == "33fd6dddd3a22dadcf822058072580be2f78b6678d8d2462ee87e023231ca9e6"


@pytest.mark.parametrize(
    ("block", "turns"),
    [
        pytest.param(0, [("large", True), ("small", False), ("held", False)], id="block 0"),
        pytest.param(1, [("small", True), ("held", False), ("large", False)], id="block 1"),
        pytest.param(3, [("large", False), ("small", True), ("held", True)], id="3 is swapped"),
    ],
)
def test_orders_are_the_documents(block: int, turns: list[tuple[str, bool]]) -> None:
    drawn = draw_order(SEED, 1, "screen", block, CELLS)
    assert [(turn.cell, turn.champion_first) for turn in drawn] == turns


def test_the_commitment_hides_the_seed_and_binds_it() -> None:
    assert commitment(b"\x00" * 32).hex() == (
        "66687aadf862bd776c8fc18b8e9f8e20089714856ee233b3902a591d0d5f2925"
    )


def test_arms_come_in_the_order_in_which_they_run() -> None:
    first, second = draw_order(SEED, 1, "screen", 0, CELLS)[:2]
    assert first.arms == ("champion", "candidate")
    assert second.arms == ("candidate", "champion")


@given(st.sets(st.text(min_size=1, max_size=8), min_size=1, max_size=7), st.integers(0, 999))
def test_half_of_the_cells_run_the_champion_first(cells: set[str], block: int) -> None:
    turns = draw_order(SEED, 1, "screen", block, sorted(cells))
    champions = sum(turn.champion_first for turn in turns)
    assert champions in {len(cells) // 2, len(cells) - len(cells) // 2}
    assert {turn.cell for turn in turns} == cells


@given(st.permutations(CELLS))
def test_the_contracts_order_of_cells_changes_nothing(cells: list[str]) -> None:
    assert draw_order(SEED, 1, "confirm", 5, cells) == draw_order(SEED, 1, "confirm", 5, CELLS)


@pytest.mark.parametrize("stage", ["screen", "confirm", "re_anchor", "selftest"])
def test_each_arm_is_first_in_about_half_of_the_blocks(stage: JudgeStage) -> None:
    first = sum(
        draw_order(SEED, k, stage, block, ["one"])[0].champion_first
        for k in range(20)
        for block in range(100)
    )
    assert 890 < first < 1110  # 1000 expected, sd 22: five of them


def test_stages_and_attempts_have_orders_of_their_own() -> None:
    cells = [f"cell {number}" for number in range(8)]
    drawn = {
        tuple(turn.cell for turn in draw_order(SEED, k, stage, 0, cells))
        for k in (1, 2)
        for stage in ("screen", "confirm", "re_anchor")
    }
    assert len(drawn) == 6
