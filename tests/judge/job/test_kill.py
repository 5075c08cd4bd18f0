"""A job that is killed at any append goes on from its history to the same verdict."""

from collections import Counter
from pathlib import Path

import pytest

from tests.judge.job.simulated_desk import Killed, SimulatedDesk, contract
from tests.simulated_rig import SimulatedRig, program
from thermite.judge.job import judge, re_anchor
from thermite.schema.event import Block, Build, Decision, JudgeStarted, Run, Verdict

CANDIDATES = {
    "promoted": program(name="new", ms=30),
    "not_better": program(name="new", ms=40),
    "overfit": program(name="new", ms={"128": 20, "256": 20, "192": 44}),
    "crash_candidate": program(name="new", exit=3, stderr="boom"),
    "invalid": program(build={"exit": 1}),
}


def desk(tmp_path: Path, new: bytes) -> SimulatedDesk:
    sources = {"old": program(name="old", ms=40), "new": new}
    return SimulatedDesk(tmp_path, sources, contract(), SimulatedRig(tmp_path / "rig"))


def whole(tmp_path: Path, new: bytes) -> tuple[Verdict, int]:
    """Judge without a kill: the verdict, and how many transactions it took."""
    made = desk(tmp_path, new)
    verdict = judge(made.job(), made.desk())
    assert isinstance(verdict, Verdict)
    return verdict, len(made.appended)


def after_a_restart(made: SimulatedDesk) -> Verdict:
    """Judge again from what the ledger holds, as the restarted harness does."""
    made.rig = SimulatedRig(made.folder / f"rig-{len(made.appended)}", seed=2)
    made.kill_before = made.kill_after = None
    verdict = judge(made.job(history=made.history, k=2), made.desk())
    assert isinstance(verdict, Verdict)
    return verdict


def nothing_twice(made: SimulatedDesk) -> None:
    counted = Counter((b.stage, b.block) for b in made.of(Block))
    assert max(counted.values(), default=1) == 1, "a block's index is used once"
    ran = Counter((r.stage, r.block, r.position) for r in made.of(Run) if r.block is not None)
    assert max(ran.values(), default=1) == 1, "a run of a block is recorded once"
    assert len(made.of(JudgeStarted)) <= 1, "one k for one try"


@pytest.mark.parametrize("kind", CANDIDATES)
def test_killed_at_every_append_it_comes_to_the_same_verdict(tmp_path: Path, kind: str) -> None:
    expected, transactions = whole(tmp_path / "whole", CANDIDATES[kind])
    assert expected.verdict == kind
    # What the ledger holds before one append it holds after the one before it.
    kills = [("before", number) for number in range(transactions)]
    for side, number in [*kills, ("after", transactions - 1)]:
        made = desk(tmp_path / f"{side}-{number}", CANDIDATES[kind])
        setattr(made, f"kill_{side}", number)
        with pytest.raises(Killed):
            judge(made.job(), made.desk())
        verdict = after_a_restart(made)
        assert verdict.verdict == kind, (side, number)
        nothing_twice(made)


def test_after_the_last_append_nothing_is_run_again(tmp_path: Path) -> None:
    expected, transactions = whole(tmp_path / "whole", CANDIDATES["promoted"])
    made = desk(tmp_path / "killed", CANDIDATES["promoted"])
    made.kill_after = transactions - 1
    with pytest.raises(Killed):
        judge(made.job(), made.desk())
    verdict = after_a_restart(made)
    assert made.rig.ran == []
    assert verdict == expected


def test_an_interrupted_block_is_void_and_counted_blocks_stay(tmp_path: Path) -> None:
    made = desk(tmp_path, CANDIDATES["promoted"])
    made.kill_after = 4  # two builds, the warm-up, two blocks
    with pytest.raises(Killed):
        judge(made.job(), made.desk())
    after_a_restart(made)
    blocks = made.of(Block)
    assert len(made.of(Build)) == 2, "builds that stand are not told of again"
    assert [(b.block, b.dropped) for b in blocks[:4]] == [
        (0, None),
        (1, None),
        (2, "interrupted"),
        (3, None),
    ]
    assert [d.n for d in made.of(Decision)[:3]] == [1, 2, 3]


def test_the_k_of_a_started_try_stays(tmp_path: Path) -> None:
    made = desk(tmp_path, CANDIDATES["promoted"])
    made.kill_after = 5
    with pytest.raises(Killed):
        judge(made.job(k=5), made.desk())
    after_a_restart(made)  # whose job says k = 2
    assert [started.k for started in made.of(JudgeStarted)] == [5]


def kill_in_blocks(made: SimulatedDesk, times: int) -> None:
    """Let the harness end so often while the next block runs."""
    for _ in range(times):
        made.rig = SimulatedRig(made.folder / f"rig-{len(made.appended)}")
        made.kill_after = len(made.appended) + (4 if not made.history else 2)
        with pytest.raises(Killed):
            judge(made.job(history=made.history), made.desk())


def test_three_interrupted_blocks_are_borne(tmp_path: Path) -> None:
    made = desk(tmp_path, CANDIDATES["promoted"])
    kill_in_blocks(made, 3)
    assert after_a_restart(made).verdict == "promoted"
    assert sum(b.dropped == "interrupted" for b in made.of(Block)) == 3


def test_the_fourth_interrupted_block_ends_the_attempt(tmp_path: Path) -> None:
    made = desk(tmp_path, CANDIDATES["promoted"])
    kill_in_blocks(made, 4)
    verdict = after_a_restart(made)
    assert verdict.verdict == "crash_infra"
    assert verdict.reasons == ["interrupted 4 times: the harness was ended while this ran"]
    assert made.rig.ran == [] or {r.slot for r in made.rig.ran} == {"builder-0"}
    assert after_a_restart(made) == verdict, "said again, and nothing more appended"


def test_interruptions_of_earlier_tries_count(tmp_path: Path) -> None:
    made = desk(tmp_path, CANDIDATES["promoted"])
    kill_in_blocks(made, 1)
    made.rig = SimulatedRig(tmp_path / "again")
    made.kill_after = None
    verdict = judge(made.job(history=made.history, interrupted=3), made.desk())
    assert isinstance(verdict, Verdict)
    assert verdict.verdict == "crash_infra"


def test_a_kill_while_building_builds_again_from_the_store(tmp_path: Path) -> None:
    made = desk(tmp_path, CANDIDATES["promoted"])
    made.kill_before = 1
    with pytest.raises(Killed):
        judge(made.job(), made.desk())
    after_a_restart(made)
    assert [(b.arm, b.cached) for b in made.of(Build)] == [
        ("champion", False),
        ("champion", True),
        ("candidate", True),
    ]


def test_a_half_made_build_is_made_again(tmp_path: Path) -> None:
    made = desk(tmp_path, CANDIDATES["promoted"])
    judge(made.job(), made.desk())
    key = made.of(Build)[0].key
    whole_build, half = tmp_path / "store" / key, tmp_path / "store" / f"{key}.part"
    whole_build.rename(half)
    (half / "record.json").unlink()
    verdict = judge(made.job(attempt=2), made.desk())
    assert isinstance(verdict, Verdict)
    assert verdict.verdict == "promoted"
    assert not half.exists()


def test_a_re_anchor_goes_on_where_it_was_killed(tmp_path: Path) -> None:
    made = desk(tmp_path, CANDIDATES["promoted"])
    made.kill_after = 9
    with pytest.raises(Killed):
        re_anchor(made.job(kind="re_anchor", attempt=None), made.desk())
    made.kill_after = None
    made.rig = SimulatedRig(tmp_path / "again", seed=3)
    job = made.job(kind="re_anchor", attempt=None, history=made.history)
    claim = re_anchor(job, made.desk())
    assert (claim.blocks, claim.reason) == (20, None)
    assert claim.gain == pytest.approx(1 / 3, abs=0.01)
    assert sum(b.dropped is None for b in made.of(Block)) == 20
    assert [b.dropped for b in made.of(Block) if b.dropped] == ["interrupted"]
    runs = made.rig.runs
    again = re_anchor(made.job(kind="re_anchor", attempt=None, history=made.history), made.desk())
    assert again == claim
    assert made.rig.runs == runs
