"""Signed orders about a campaign that runs: what each changes, and what is refused in words."""

import re
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.harness.ordered import BASE, REVIEWED, THREE, Rig, ended, submitted
from tests.simulated_campaign import ASSIGNMENT, Home
from thermite.audit.rejudge import rejudge
from thermite.errors import CommandError
from thermite.ledger.replay import recorded
from thermite.report.campaign import progress, rows
from thermite.schema import event as e


def test_stop_lets_the_running_attempt_end(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, BASE, THREE))
    rig.when(submitted(1), lambda: rig.order("stop_campaign", now=False))
    assert rig.life.run()
    assert rig.results == ["not_better"]
    assert rig.life.assignment.end_reason == "stopped"


def test_stop_now_cancels_what_is_judged(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, BASE, THREE))
    rig.when(submitted(1), lambda: rig.order("stop_campaign", now=True))
    assert rig.life.run()
    assert rig.results == ["cancelled"]
    assert rig.life.assignment.end_reason == "stopped"
    assert rig.life.assignment.status == "ended"


@pytest.mark.parametrize(
    ("first", "second", "said"),
    [
        pytest.param(True, True, "stops now already: wait for its end", id="now twice"),
        pytest.param(True, False, "stops now already", id="later after all"),
        pytest.param(False, False, "after the running attempts already", id="later twice"),
    ],
)
def test_a_stop_that_changes_nothing_is_refused(
    first: bool, second: bool, said: str, tmp_path: Path
) -> None:
    rig = Rig(Home(tmp_path, BASE, THREE))
    refused: list[CommandError] = []

    def twice() -> None:
        rig.order("stop_campaign", now=first)
        try:
            rig.order("stop_campaign", now=second)
        except CommandError as error:
            refused.append(error)

    rig.when(submitted(1), twice)
    assert rig.life.run()
    assert [one.code for one in refused] == ["wrong_state"]
    assert said in str(refused[0])
    assert rig.kinds() == ["cancelled" if first else "not_better"]


def test_a_stop_after_the_running_attempt_may_become_one_now(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, BASE, THREE))

    def twice() -> None:
        rig.order("stop_campaign", now=False)
        rig.order("stop_campaign", now=True)

    rig.when(submitted(1), twice)
    assert rig.life.run()
    assert rig.kinds() == ["cancelled"]


def test_a_paused_campaign_starts_nothing_until_it_is_resumed(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, BASE, THREE))

    def pause_and_resume() -> None:
        rig.order("pause_campaign")
        assert rig.life.assignment.status == "paused"
        rig.when(ended(1), lambda: rig.order("resume_campaign"))

    rig.when(submitted(1), pause_and_resume)
    assert rig.life.run()
    assert rig.results == ["not_better", "regressed", "promoted"]


def test_a_note_is_in_the_next_brief(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, BASE, THREE))
    rig.when(submitted(1), lambda: rig.order("steer_campaign", text="try tiles"))
    assert rig.life.run()
    assert rig.life.assignment.steers == [(None, "try tiles")]


def test_an_extended_budget_lets_more_attempts_start(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, BASE, THREE, {"budget": {"attempts": 1}}))
    rig.when(submitted(1), lambda: rig.order("extend_budget", budget={"attempts": 3}))
    assert rig.life.run()
    assert len(rig.results) == 3
    assert rig.life.assignment.contract.budget.attempts == 3


def test_a_budget_that_no_confirmation_could_follow_is_refused(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, BASE, {"a": THREE["a"]}))
    refused: list[str] = []

    def extend() -> None:
        try:
            rig.order("extend_budget", budget={"attempts": 4000})
        except CommandError as error:
            refused.append(str(error))

    rig.when(submitted(1), extend)
    assert rig.life.run()
    said = (
        "judging.confirm_max_blocks is 40, and attempt 8000 needs at least 49 blocks to be"
        " confirmed: set it to 49, or plan at most 3100 attempts"
    )
    assert refused == [said]
    assert rig.life.assignment.contract.budget.attempts == 50


def test_a_released_hold_is_promoted_and_a_rejected_one_is_suspect(tmp_path: Path) -> None:
    for action, result in (("release", "promoted"), ("reject", "suspect")):
        huge = {"a": {"ms": 20}, "b": {"ms": 401}}  # a is twenty times as fast
        rig = Rig(Home(tmp_path / action, {"ms": 400}, huge))

        def resolve(rig: Rig = rig, action: str = action) -> None:
            waits = "; held for thermite campaign resolve: attempt 1"
            assert progress(rig.life.assignment).endswith(waits)
            (row, *_) = rows(rig.life.assignment)
            assert (row.verdict, row.reasons[0]) == ("held", "held for suspect_gain")
            assert row.reasons[1].endswith("measured in 10 blocks")
            rig.order("resolve_hold", attempt=1, action=action)
            assert waits not in progress(rig.life.assignment)
            with pytest.raises(CommandError, match=f"{action}e?d already, and only a held one"):
                rig.order("resolve_hold", attempt=1, action="reject")

        rig.when(lambda data: isinstance(data, e.Hold), resolve)
        assert rig.life.run()
        assert rig.results[0] == result
        attempt = rig.life.assignment.attempts[1]
        assert attempt.hold == "suspect_gain"
        assert attempt.verdict is not None
        said = {"reject": "held for suspect_gain, and a person rejected it"}
        assert attempt.verdict.reasons[0].startswith(said.get(action, "held for suspect_gain: "))
        told = [] if action == "reject" else ["a person released it"]
        assert rows(rig.life.assignment)[0].reasons == [*told, *attempt.verdict.reasons]


def test_a_hold_that_nobody_resolves_in_time_runs_out_while_the_campaign_goes_on(
    tmp_path: Path,
) -> None:
    huge = {"a": {"ms": 20}, "b": {"ms": 401}}  # a is twenty times as fast
    rig = Rig(Home(tmp_path, {"ms": 400}, huge, {"judging": {"hold_timeout_s": 1}}))

    def resume() -> None:
        rig.order("resume_campaign")

    def pause() -> None:
        rig.order("pause_campaign")
        rig.when(lambda data: isinstance(data, e.HoldResolved), resume)

    rig.when(lambda data: isinstance(data, e.Hold), pause)
    assert rig.life.run()
    # Paused until the hold ran out: the campaign's own end did not close it.
    verdict = rig.life.assignment.attempts[1].verdict
    assert verdict is not None
    first, found = verdict.reasons
    assert verdict.verdict == "not_confirmed"
    assert first == "held for suspect_gain, nobody released it"
    assert found.endswith("measured in 10 blocks")


HUGE_AND_NULL = {"a": {"ms": 20}, "b": {"ms": 401}}
"""One that is twenty times as fast as 400 ms, and one that is worth nothing."""


@pytest.mark.parametrize(
    ("action", "rest", "reason"),
    [
        pytest.param("release", {}, "nothing left to propose", id="released"),
        pytest.param("reject", {}, "nothing left to propose", id="rejected"),
        pytest.param("release", {"stop": {"stale_attempts": 1}}, "stop: stale_attempts", id="stop"),
        pytest.param("release", {"budget": {"attempts": 2}}, "budget: attempts", id="budget"),
    ],
)
def test_a_campaign_waits_for_the_person_who_resolves_its_hold(
    tmp_path: Path, action: str, rest: dict[str, Any], reason: str
) -> None:
    rig = Rig(Home(tmp_path, {"ms": 400}, HUGE_AND_NULL, rest))
    seen: list[str] = []

    def resolve() -> None:
        seen.append(progress(rig.life.assignment))
        rig.order("resolve_hold", attempt=1, action=action)

    rig.when(ended(2), threading.Timer(0.3, resolve).start)
    assert rig.life.run()
    assert rig.results == [{"release": "promoted", "reject": "suspect"}[action], "not_better"]
    assert rig.life.assignment.end_reason == reason
    waits = "waiting for a person, for 7 days from the hold on"
    assert seen == [f"{waits}; held for thermite campaign resolve: attempt 1"]


def test_a_release_against_an_older_champion_is_measured_against_the_new_one(
    tmp_path: Path,
) -> None:
    rig = Rig(Home(tmp_path, {"ms": 400}, {"a": {"ms": 25}, "b": {"ms": 200}}))

    def resolve() -> None:
        rig.order("resolve_hold", attempt=1, action="release")

    rig.when(ended(2), threading.Timer(0.1, resolve).start)
    assert rig.life.run()
    assert rig.results == ["promoted", "promoted"]
    told = [row.event.data for row in recorded(rig.home.rig.ledger)]
    begun = [(d.attempt, d.tries, d.k) for d in told if isinstance(d, e.JudgeStarted)]
    assert begun == [(1, 1, 1), (2, 1, 2), (1, 2, 3)]
    first, second = rig.life.assignment.promotions
    assert (first.attempt, second.attempt) == (2, 1)
    assert second.previous == first.commit
    assert second.gain == pytest.approx(200 / 25 - 1, rel=0.05)  # not the 400 / 25 that was held
    assert rejudge(rig.home.rig.ledger).differences == []


def test_a_campaign_waits_no_longer_than_its_holds_may(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, {"ms": 400}, HUGE_AND_NULL, {"judging": {"hold_timeout_s": 1}}))
    assert rig.life.run()
    assert rig.results == ["not_confirmed", "not_better"]


@pytest.mark.parametrize("now", [True, False])
def test_a_stop_waits_for_nobody(tmp_path: Path, now: bool) -> None:
    rig = Rig(Home(tmp_path, {"ms": 400}, HUGE_AND_NULL))
    rig.when(ended(2), threading.Timer(0.1, lambda: rig.order("stop_campaign", now=now)).start)
    assert rig.life.run()
    assert rig.results == ["not_confirmed", "not_better"]
    assert rig.life.assignment.end_reason == "stopped"


def test_a_new_budget_goes_on_while_a_hold_waits(tmp_path: Path) -> None:
    asked = {"budget": {"attempts": 1}, "judging": {"hold_timeout_s": 3}}
    rig = Rig(Home(tmp_path, {"ms": 400}, HUGE_AND_NULL, asked))

    def extend() -> None:
        rig.order("extend_budget", budget={"attempts": 9})

    rig.when(lambda data: isinstance(data, e.Hold), threading.Timer(0.1, extend).start)
    assert rig.life.run()
    assert rig.results == ["not_confirmed", "not_better"]


def test_a_second_try_is_not_judged_when_the_first_spent_the_budget(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, BASE, {"a": THREE["a"]}, {"budget": {"judge_s": 0.001}}))
    rig.life.stages.break_at = {24}  # in screen, after the selftest's 18 runs
    assert rig.life.run()
    (attempt,) = rig.life.assignment.attempts.values()
    assert attempt.verdict is not None
    assert (attempt.verdict.verdict, attempt.verdict.reasons) == (
        "cancelled",
        ["the campaign's budget of judge_s was spent before this was judged"],
    )
    assert rig.life.assignment.end_reason == "budget: judge_s"


def test_a_released_hold_needs_no_budget(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, {"ms": 400}, {"a": {"ms": 20}}, {"budget": {"judge_s": 0.001}}))

    def resolve() -> None:
        rig.order("resolve_hold", attempt=1, action="release")

    rig.when(lambda data: isinstance(data, e.Hold), resolve)
    assert rig.life.run()
    assert rig.results == ["promoted"]


def test_lanes_together_start_no_more_attempts_than_there_are(tmp_path: Path) -> None:
    lanes = {"agents": {"workers": {"backend": "replay", "lanes": 3}}, "budget": {"attempts": 1}}
    home = Home(tmp_path, BASE, THREE)
    lanes["agents"]["workers"]["options"] = {"from": home.replay}  # type: ignore[index]
    home.contract = lanes
    rig = Rig(home)
    assert rig.life.run()
    assert len(rig.life.assignment.attempts) == 1


@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        pytest.param(
            "vote_review",
            {"attempt": 1, "goal": "other", "vote": "met", "reason": ""},
            "the contract has no goal 'other' to vote on: its review goals are clear",
            id="a goal that is not there",
        ),
        pytest.param(
            "vote_review",
            {"attempt": 9, "goal": "clear", "vote": "met", "reason": ""},
            f"assignment {ASSIGNMENT} has no attempt 9",
            id="an attempt that is not there",
        ),
        pytest.param(
            "vote_review",
            {"attempt": 1, "goal": "clear", "vote": "met", "reason": "x" * 2001},
            "the reason has 2001 characters, and at most 2000 are kept: shorten it",
            id="a long reason",
        ),
        pytest.param(
            "steer_campaign",
            {"text": " \n", "lane": None},
            "the note is empty: say what the workers should know",
            id="a note of nothing",
        ),
        pytest.param(
            "resolve_hold",
            {"attempt": 1, "action": "release"},
            "attempt 1 waits for votes: give yours with thermite campaign review",
            id="a vote is no hold",
        ),
        pytest.param(
            "resume_campaign", {}, f"assignment {ASSIGNMENT} is running already", id="not paused"
        ),
        pytest.param(
            "extend_budget",
            {"budget": {"attempts": 1}},
            "budget.attempts is 50, and the new limit is 1: it may only grow",
            id="a smaller budget",
        ),
    ],
)
def test_an_order_that_fits_nothing_is_refused_in_words(
    tmp_path: Path, kind: str, body: dict[str, Any], said: str
) -> None:
    rig = Rig(Home(tmp_path, BASE, {"a": THREE["a"]}, REVIEWED))
    refused: list[str] = []

    def give() -> None:
        try:
            rig.order(kind, **body)
        except CommandError as error:
            refused.append(str(error))
        rig.order("stop_campaign")

    rig.when(lambda data: isinstance(data, e.Hold), give)
    assert rig.life.run()
    assert len(refused) == 1
    assert re.match(re.escape(said), refused[0]), refused
