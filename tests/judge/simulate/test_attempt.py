"""Attempts without noise end where the rule's arithmetic says."""

import math
from collections.abc import Iterator
from itertools import repeat
from random import Random

import pytest

from thermite.judge.simulate.attempt import SignFlip, parameters
from thermite.judge.simulate.edit import Edit, Machine, Outcome, gain_of

SEED = bytes(32)


def silent(draw: Random) -> Iterator[float]:
    del draw
    return repeat(0.0)


def judged(edit: Edit, *, cells: int = 1, held_out: int = 0, k: int = 1) -> Outcome:
    p = parameters(0.005, cells=cells, held_out=held_out)
    return SignFlip(p, SEED).judge(k, edit, 0.7, Machine(silent, Random(1)))


def test_a_clear_gain_takes_six_blocks_of_screen_and_ten_of_confirm() -> None:
    out = judged(gain_of(0.05), cells=2, held_out=1)
    assert (out.verdict, out.blocks) == ("promoted", 16)
    assert math.expm1(out.claim) == pytest.approx(0.05, abs=1e-6)


def test_a_later_index_asks_for_more_blocks() -> None:
    assert judged(gain_of(0.05), k=1001).blocks == 6 + 15


def test_a_null_ends_as_soon_as_it_may() -> None:
    assert judged(Edit()) == Outcome(verdict="not_better", blocks=5, claim=0.0)


def test_a_slower_edit_is_called_so_or_no_better() -> None:
    assert judged(gain_of(-0.05)).verdict in {"regressed", "not_better"}


def test_a_loss_on_held_out_cells_is_overfit() -> None:
    edit = Edit(gain=math.log1p(0.03), held_out=math.log1p(-0.01))
    assert judged(edit, held_out=1).verdict == "overfit"
