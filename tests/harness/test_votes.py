"""Votes of people on what a research campaign made: who decides, and what is refused."""

from collections.abc import Callable
from pathlib import Path

from tests.harness.ordered import BASE, REVIEWED, THREE, Rig
from tests.simulated_campaign import Home
from thermite.errors import CommandError
from thermite.schema import event as e


def test_people_decide_a_research_campaign(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, BASE, THREE, REVIEWED), voters=3)

    def vote() -> None:
        rig.order("vote_review", attempt=3, goal="clear", vote="met", reason="")
        rig.order("vote_review", by=1, attempt=3, goal="clear", vote="unmet", reason="too terse")
        rig.order("vote_review", by=2, attempt=3, goal="clear", vote="met", reason="clear")

    rig.when(lambda data: isinstance(data, e.Hold) and data.attempt == 3, vote)
    assert rig.life.run()
    assert rig.results == ["goals_unmet", "goals_unmet", "goals_met"]
    assert rig.life.assignment.end_reason == "goals met"
    said = "0 of 2 votes that it is met, 0 that it is not, and the campaign ended"
    first = rig.life.assignment.attempts[1].verdict
    assert first is not None
    assert first.reasons == [f"goal clear: {said}"]


def test_a_quorum_against_a_candidate_says_why(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, BASE, {"a": THREE["a"]}, REVIEWED), voters=2)

    def vote() -> None:
        rig.order("vote_review", attempt=1, goal="clear", vote="unmet", reason="too terse")
        rig.order("vote_review", by=1, attempt=1, goal="clear", vote="unmet", reason="no figures")

    rig.when(lambda data: isinstance(data, e.Hold), vote)
    assert rig.life.run()
    verdict = rig.life.assignment.attempts[1].verdict
    assert verdict is not None
    assert verdict.reasons == ["goal clear: voted unmet: too terse; no figures"]
    assert rig.life.assignment.end_reason == "nothing left to propose"


def test_a_campaign_that_waits_for_votes_ends_when_it_is_stopped(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, BASE, {"a": THREE["a"]}, REVIEWED))
    rig.when(lambda data: isinstance(data, e.Hold), lambda: rig.order("stop_campaign"))
    assert rig.life.run()
    assert rig.life.assignment.end_reason == "stopped"
    assert rig.results == ["goals_unmet"]


def test_a_harness_that_dies_at_any_append_still_waits_for_its_votes(tmp_path: Path) -> None:
    for die_at in range(2, 12):
        home = Home(tmp_path / str(die_at), BASE, {"a": THREE["a"]}, REVIEWED)
        first = Rig(home, voters=2)

        def vote(rig: Rig) -> Callable[[], None]:
            def both() -> None:
                for by in (0, 1):
                    if rig.life.assignment.attempts[number(rig)].result is None:
                        cast_once(rig, by, number(rig))

            return both

        first.when(lambda data: isinstance(data, e.Hold), vote(first))
        first.life.run(die_at=die_at)
        second = Rig(home)
        second.keys = first.keys
        if second.life.assignment.status == "ended":
            second.life.ledger.close()
            assert second.results == ["goals_met"]
            break
        second.when(lambda data: isinstance(data, e.Hold), vote(second))
        held = [a for a in second.life.assignment.attempts.values() if a.status == "held"]
        if held:
            vote(second)()
        second.life.run()
        kept = [result for result in second.results if result != "killed"]
        assert kept == ["goals_met"], die_at


def number(rig: Rig) -> int:
    return max(rig.life.assignment.attempts)


def cast_once(rig: Rig, by: int, attempt: int) -> None:
    voted = rig.life.assignment.attempts[attempt].votes.get("clear", [])
    if rig.keys[by].public.id not in {vote.voter for vote in voted}:
        rig.order("vote_review", by=by, attempt=attempt, goal="clear", vote="met", reason="")


def test_a_research_campaign_without_goals_keeps_its_candidates(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, BASE, THREE, {**REVIEWED, "goals": []}))
    assert rig.life.run()
    assert rig.kinds() == ["valid", "valid", "valid"]


def test_one_key_has_one_vote(tmp_path: Path) -> None:
    rig = Rig(Home(tmp_path, BASE, {"a": THREE["a"]}, REVIEWED))
    refused: list[CommandError] = []

    def twice() -> None:
        rig.order("vote_review", attempt=1, goal="clear", vote="met", reason="")
        try:
            rig.order("vote_review", attempt=1, goal="clear", vote="unmet", reason="")
        except CommandError as error:
            refused.append(error)
        rig.order("stop_campaign")

    rig.when(lambda data: isinstance(data, e.Hold), twice)
    assert rig.life.run()
    assert [one.code for one in refused] == ["wrong_state"]
    assert "one key has one vote" in str(refused[0])
