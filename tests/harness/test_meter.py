"""What an attempt has spent until a kill is known to the next harness, and ends a budget."""

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.harness.test_worker import stages, stopped_campaign  # noqa: F401 - a fixture
from tests.simulated_campaign import Home, KilledError, Life
from thermite.harness.book import Draft
from thermite.harness.lane import meter_of
from thermite.harness.meter import EVERY_S, Meter, read_meter
from thermite.ledger.replay import recorded
from thermite.rig.stages import Stages
from thermite.schema.event import AttemptStarted, BudgetSpent


def amounts(life: Life, what: str) -> list[float]:
    told = [row.event.data for row in recorded(life.home.rig.ledger)]
    spent = [one for one in told if isinstance(one, BudgetSpent)]
    return [one.amounts[what] for one in spent if what in one.amounts]


def test_a_meter_counts_what_was_spent_before_and_each_second_that_has_begun(
    tmp_path: Path,
) -> None:
    path = tmp_path / "meter"
    first = Meter(path)
    assert first.spent_s == 0
    with first.running():
        while not read_meter(path):  # there, and written
            time.sleep(0.001)
        # What a kill at this moment would leave is never too little.
        assert read_meter(path) >= EVERY_S
    assert read_meter(path) == pytest.approx(first.spent_s, abs=1e-5)
    second = Meter(path)
    assert second.carried_s == pytest.approx(first.spent_s, abs=1e-5)
    with second.running():
        pass
    assert second.spent_s > second.carried_s
    second.forget()
    assert Meter(path).spent_s == 0


@pytest.mark.parametrize("raw", [b"", b"x", b"nan", b"inf", b"-1", b"1e99", b"1\n2", b"\xff"])
def test_what_no_meter_has_written_counts_for_nothing(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "meter").write_bytes(raw)
    assert read_meter(tmp_path / "meter") == 0


def test_a_disk_that_refuses_ends_no_work(tmp_path: Path) -> None:
    meter = Meter(tmp_path / "gone" / "meter")
    with meter.running():
        pass
    assert meter.spent_s > 0


def dying_when_its_worker_ends(life: Life) -> Life:
    """A life that dies where it is about to say what came of the first worker that it started."""
    begun: list[Draft] = []

    def die(drafts: Sequence[Draft]) -> None:
        if begun:
            raise KilledError("killed before the commit")
        begun.extend(draft for draft in drafts if isinstance(draft.data, AttemptStarted))

    life.book.appending = die
    return life


def test_kills_at_work_spend_the_time_of_the_budget(
    tmp_path: Path,
    stages: Stages,  # noqa: F811 - the fixture
) -> None:
    """A campaign that was killed in each attempt had all its time again, for ever."""
    life = dying_when_its_worker_ends(stopped_campaign(tmp_path, stages, "sleep 0.3", wall_s=0.5))
    lives = 1
    while not life.run():
        life = dying_when_its_worker_ends(Life(life.home))
        life.bench = replace(life.bench, stages=stages)
        lives += 1
        assert lives <= 3, amounts(life, "wall_s")
    assert life.assignment.end_reason == "budget: wall_s"
    assert {a.result for a in life.assignment.attempts.values()} == {"killed"}
    assert sum(amounts(life, "wall_s")) >= 0.5
    assert list(life.home.rig.blobs.glob(".spent-*")) == []


def test_kills_at_the_judge_spend_its_budget(tmp_path: Path) -> None:
    home = Home(tmp_path, {"ms": 40}, {"a": {"ms": 20}}, {"budget": {"judge_s": 0.001}})
    life = Life(home)

    def die(drafts: Sequence[Draft]) -> None:
        if any(
            "judge_s" in one.data.amounts for one in drafts if isinstance(one.data, BudgetSpent)
        ):
            raise KilledError("killed before the commit")

    life.book.appending = die
    assert not life.run()
    assert amounts(life, "judge_s") == []
    (attempt,) = life.assignment.attempts.values()
    spent = read_meter(meter_of(home.rig.blobs, life.assignment.id, attempt))
    assert spent > 0.001
    life = Life(home)
    assert life.run()
    (attempt,) = life.assignment.attempts.values()
    assert (attempt.result, life.assignment.end_reason) == ("cancelled", "budget: judge_s")
    assert amounts(life, "judge_s") == [spent]


def test_a_meter_that_a_kill_left_beside_its_event_counts_no_more(tmp_path: Path) -> None:
    home = Home(tmp_path, {"ms": 40}, {"a": {"ms": 20}}, {"budget": {"judge_s": 600}})
    life = Life(home)
    kept: list[Path] = []

    def die(drafts: Sequence[Draft]) -> None:
        if any(
            "judge_s" in one.data.amounts for one in drafts if isinstance(one.data, BudgetSpent)
        ):
            kept.extend(home.rig.blobs.glob(".spent-*"))
            raise KilledError("killed after the commit")

    life.book.committed = die
    assert not life.run()
    assert len(kept) == 1
    life = Life(home)
    assert life.run()
    assert len(amounts(life, "judge_s")) == 1
    assert list(home.rig.blobs.glob(".spent-*")) == []
