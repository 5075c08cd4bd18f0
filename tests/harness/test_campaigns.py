"""Whole campaigns on a simulated rig, with a real ledger and real git."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.requirement import shows
from tests.simulated_campaign import ASSIGNMENT, Home, Life
from thermite.audit.rejudge import rejudge
from thermite.audit.verify import audit
from thermite.harness.book import Draft
from thermite.schema.event import (
    AgentFinished,
    AttemptStarted,
    CandidateSubmitted,
    ChampionPromoted,
)

BASE = {"ms": 40}
CANDIDATES: dict[str, dict[str, Any]] = {
    "a-wrong": {"ms": 20, "check": {"line": {"pass": False, "reasons": ["the edge is wrong"]}}},
    "b-crash": {"ms": 20, "exit": 3, "stderr": "boom"},
    "c-slow": {"ms": 60},
    "d-same": {"ms": 40, "comment": 1},
    "e-fast": {"ms": 25},
    "f-again": {"ms": 25},
    "g-faster": {"ms": 15},
    "h-broken": {"build": {"exit": 1, "log": "syntax error"}},
}
EXPECTED = {
    "a-wrong": "invalid",
    "b-crash": "crash_candidate",
    "c-slow": "regressed",
    "d-same": "not_better",
    "e-fast": "promoted",
    "f-again": "no_change",
    "g-faster": "promoted",
    "h-broken": "invalid",
}


def results(life: Life) -> dict[str, str | None]:
    attempts = life.assignment.attempts.values()
    return {a.started.proposal or "": a.result for a in attempts if a.result != "killed"}


@shows("K-123")
def test_a_campaign_promotes_the_faster_and_refuses_the_rest(tmp_path: Path) -> None:
    life = Life(Home(tmp_path, BASE, CANDIDATES))
    assert life.run()
    assignment = life.assignment
    assert results(life) == EXPECTED
    assert [p.attempt for p in assignment.promotions] == [5, 7]
    assert assignment.status == "ended"
    assert assignment.end_reason == "nothing left to propose"
    assert assignment.gain == pytest.approx(40 / 15 - 1, abs=0.05)
    assert assignment.attempts[1].verdict is not None
    assert assignment.attempts[1].verdict.reasons == ["the edge is wrong"]


def test_a_budget_ends_a_campaign_with_its_name(tmp_path: Path) -> None:
    life = Life(Home(tmp_path, BASE, CANDIDATES, {"budget": {"attempts": 2}}))
    assert life.run()
    assert len(life.assignment.attempts) == 2
    assert life.assignment.end_reason == "budget: attempts"


def test_two_lanes_share_one_judge(tmp_path: Path) -> None:
    fast = {name: {"ms": ms} for name, ms in (("a", 39), ("b", 41), ("c", 20), ("d", 42))}
    home = Home(tmp_path, BASE, fast)
    home.contract = {
        "agents": {"workers": {"backend": "replay", "lanes": 2, "options": {"from": home.replay}}}
    }
    life = Life(home)
    assert life.run()
    assert results(life)["c"] == "promoted"
    assert {a.lane for a in life.assignment.attempts.values()} == {0, 1}


def test_the_judge_takes_no_other_job_before_a_promotion_has_moved_the_champion(
    tmp_path: Path,
) -> None:
    """Another lane's job began in between, named the old champion, and ended the harness."""
    life = Life(Home(tmp_path, BASE, {"a": {"ms": 20}}))
    held: list[bool] = []

    def look(drafts: Sequence[Draft]) -> None:
        if any(isinstance(draft.data, ChampionPromoted) for draft in drafts):
            held.append(life.bench.turn.locked())

    life.book.appending = look
    assert life.run()
    assert held == [True]


def test_a_tree_that_comes_again_is_answered_in_words(tmp_path: Path) -> None:
    twice = {"a": {"ms": 39}, "b": {"ms": 39}}
    life = Life(Home(tmp_path, BASE, twice))
    assert life.run()
    again = life.assignment.attempts[2].verdict
    assert again is not None
    assert (again.verdict, again.reasons) == (
        "duplicate",
        ["the same tree was judged in attempt 1"],
    )


def test_a_kit_that_is_gone_ends_the_campaign_in_words(tmp_path: Path) -> None:
    home = Home(tmp_path, BASE, CANDIDATES)
    home.rig.kit_repo("tiny").rename(home.rig.state.with_name("elsewhere"))
    life = Life(home)
    assert life.run()
    assert str(life.assignment.end_reason).startswith("infrastructure: ")


def test_a_project_that_is_lost_while_a_lane_works_ends_the_campaign_in_words(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path, BASE, CANDIDATES)
    life = Life(home)

    def lose(drafts: Sequence[Draft]) -> None:
        if any(isinstance(d.data, AttemptStarted) and d.data.attempt == 2 for d in drafts):
            home.rig.project_repo("p").rename(home.rig.state.with_name("elsewhere"))

    life.book.committed = lose
    assert life.run()
    assert life.assignment.status == "ended"
    assert str(life.assignment.end_reason).startswith("infrastructure: ")
    assert [a.result for a in life.assignment.attempts.values()] == ["invalid", "killed"]


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        pytest.param(AttemptStarted, "killed", id="L11-an agent at work"),
        pytest.param(CandidateSubmitted, "cancelled", id="L11-a candidate"),
    ],
)
def test_an_attempt_that_was_interrupted_ends_with_a_campaign_that_can_not_go_on(
    tmp_path: Path, kind: type, result: str
) -> None:
    """It was shown as at work for ever."""
    home = Home(tmp_path, BASE, CANDIDATES)
    life = Life(home)

    def die(drafts: Sequence[Draft]) -> None:
        if any(isinstance(draft.data, kind) for draft in drafts):
            life.book.die_at = life.book.appends + 1

    life.book.committed = die
    assert not life.run()
    home.rig.project_repo("p").rename(home.rig.state.with_name("elsewhere"))
    again = Life(home)
    assert again.run()
    assert str(again.assignment.end_reason).startswith("infrastructure: ")
    [attempt] = again.assignment.attempts.values()
    assert (attempt.status, attempt.result) == ("ended", result)
    assert not audit(home.rig.ledger).fails
    assert rejudge(home.rig.ledger).differences == []


def test_what_the_rig_could_not_make_is_offered_again_by_the_next_harness(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path, BASE, {"a-fast": {"ms": 20}})
    repo, elsewhere = home.rig.project_repo("p"), home.rig.state.with_name("elsewhere")

    def lose(drafts: Sequence[Draft]) -> None:
        if isinstance(drafts[0].data, AttemptStarted):
            repo.rename(elsewhere)
        if isinstance(drafts[0].data, AgentFinished):
            life.book.die_at = life.book.appends + 1  # the campaign's end

    life = Life(home)
    life.book.committed = lose
    assert not life.run()
    elsewhere.rename(repo)
    second = Life(home, seed=2)
    assert second.run()
    assert results(second) == {"a-fast": "promoted"}


def test_an_ended_campaign_is_not_begun_again(tmp_path: Path) -> None:
    home = Home(tmp_path, BASE, {"a": {"ms": 60}})
    assert Life(home).run()
    life = Life(home)
    size = life.ledger.size
    life.ledger.close()
    assert life.book.state.assignments[ASSIGNMENT].status == "ended"
    assert size == life.book.state.seq
