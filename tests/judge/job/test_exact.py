"""A metric of the check that never varies is judged in four blocks, and by the old rule if not."""

from pathlib import Path

import pytest

from tests.judge.job.simulated_desk import Killed, SimulatedDesk, contract, desk, verdict_of
from tests.judge.job.test_kill import after_a_restart, nothing_twice
from tests.simulated_rig import program
from thermite.judge.job import judge
from thermite.schema.event import Block, Decision, JudgeStarted

SCREEN_RUNS = range(4, 16)
"""Three blocks of two cells and two arms, after a warm-up run of each."""
CONFIRM_RUNS = range(22, 28)
"""One block of three cells, after their warm-up."""


def accurate(acc: float, **said: object) -> bytes:
    return program(name=f"acc {acc}", check={"line": {"pass": True, "acc": acc}}, **said)


def accuracy_desk(
    tmp_path: Path, new: bytes, *, allowed_loss: float | None = None
) -> SimulatedDesk:
    judging = {"cell_allowed_loss": allowed_loss}
    asked = contract(
        objective={"primary": {"metric": "accuracy"}, "min_effect": 0.01}, judging=judging
    )
    return desk(tmp_path, new, accurate(0.50), contract=asked)


def decided(made: SimulatedDesk) -> list[tuple[str, int, str, str]]:
    ends = [d for d in made.of(Decision) if d.action != "continue"]
    return [(d.stage, d.n, d.action, d.rule) for d in ends]


def test_a_better_value_is_promoted_in_four_blocks(tmp_path: Path) -> None:
    made = accuracy_desk(tmp_path, accurate(0.52))
    verdict = verdict_of(made)
    assert verdict.verdict == "promoted"
    assert verdict.gain == pytest.approx(0.04)
    assert list(verdict.interval or []) == [pytest.approx(0.04), pytest.approx(0.04)]
    assert verdict.reasons == ["better: 4 % by values of the check that never varied"]
    assert decided(made) == [("screen", 3, "pass", "exact-1"), ("confirm", 1, "pass", "exact-1")]
    assert made.of(JudgeStarted)[0].rule == "signflip-2"


@pytest.mark.parametrize(
    ("new", "kind", "said"),
    [
        pytest.param(accurate(0.504), "not_better", "no gain of 1 % was shown: 0.8 %", id="small"),
        pytest.param(accurate(0.499), "regressed", "worse: -0.2 %", id="worse by a hair"),
        pytest.param(
            accurate(0.55, at={"192": {"check": {"line": {"pass": True, "acc": 0.49}}}}),
            "overfit",
            "the held-out cells lost more than 0.5 %",
            id="held out",
        ),
    ],
)
def test_values_lead_to_the_verdict(tmp_path: Path, new: bytes, kind: str, said: str) -> None:
    made = accuracy_desk(tmp_path, new)
    verdict = verdict_of(made)
    assert verdict.verdict == kind
    assert verdict.reasons[0].startswith(said)
    assert {rule for _, _, _, rule in decided(made)} == {"exact-1"}


def test_a_cell_that_lost_is_named_with_its_own_change(tmp_path: Path) -> None:
    worse = {"256": {"check": {"line": {"pass": True, "acc": 0.48}}}}
    made = accuracy_desk(tmp_path, accurate(0.60, at=worse), allowed_loss=0.03)
    verdict = verdict_of(made)
    assert verdict.verdict == "guard_failed"
    assert verdict.reasons[0].startswith("accuracy in large lost more than 3 %: -4 %, by values")


def test_values_that_vary_in_screen_are_judged_by_the_coin(tmp_path: Path) -> None:
    made = accuracy_desk(tmp_path, accurate(0.52))
    made.rig.say_at[SCREEN_RUNS[0]] = {"check": {"line": {"pass": True, "acc": 0.505}}}
    assert verdict_of(made).verdict == "promoted"
    assert {rule for _, _, _, rule in decided(made)} == {"signflip-2"}


def test_a_value_that_varies_in_confirm_leads_back_to_screen(tmp_path: Path) -> None:
    made = accuracy_desk(tmp_path, accurate(0.52))
    odd = {"check": {"line": {"pass": True, "acc": 0.7}}}
    made.rig.say_at = dict.fromkeys(CONFIRM_RUNS, odd)
    assert verdict_of(made).verdict == "promoted"
    dropped = [(b.stage, b.block, b.dropped) for b in made.of(Block) if b.dropped]
    assert dropped == [("confirm", 0, "not_exact")]
    (first, *later) = decided(made)
    assert first == ("screen", 3, "pass", "exact-1")
    # Screen goes on from its three blocks: six are the fewest that show anything.
    assert later == [("screen", 6, "pass", "signflip-2"), ("confirm", 10, "pass", "signflip-2")]
    confirm = [b.block for b in made.of(Block) if b.stage == "confirm"]
    assert confirm == list(range(11))


def test_killed_at_every_append_it_comes_to_the_same_verdict(tmp_path: Path) -> None:
    odd = {run: {"check": {"line": {"pass": True, "acc": 0.7}}} for run in CONFIRM_RUNS}
    for number in range(1, 12):
        made = accuracy_desk(tmp_path / str(number), accurate(0.52))
        made.rig.say_at, made.kill_before = odd, number
        with pytest.raises(Killed):
            judge(made.job(), made.desk())
        assert after_a_restart(made).verdict == "promoted"
        nothing_twice(made)
