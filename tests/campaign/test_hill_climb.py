"""A hill climb's decisions, from events written by hand."""

import msgspec
import pytest

from tests.campaign.events import (
    BASE,
    FAST,
    TREE,
    A,
    build,
    created,
    event,
    lane,
    opened,
    started,
    submitted,
)
from thermite.campaign import attempts, hill_climb
from thermite.campaign.fold import fold, replay
from thermite.campaign.state import ReAnchor, State
from thermite.campaign.table import problem
from thermite.report.campaign import headline, row
from thermite.schema import event as e
from thermite.schema.strict import Strict


def judge_started(n: int, k: int) -> e.JudgeStarted:
    return e.JudgeStarted(
        attempt=n,
        tries=1,
        k=k,
        alpha_k=2.5e-5,
        candidate=FAST,
        champion=BASE,
        contract_sha256="c" * 64,
        kit_commit=BASE,
        rule="signflip-1",
        params={},
        isolation="none",
        agents_during_timing="frozen",
    )


def decision(
    n: int | None, stage: str = "confirm", action: str = "pass", t: float = 0.5
) -> e.Decision:
    fields = {"attempt": n, "tries": 1, "stage": stage, "n": 10, "lnE": 9.0, "T": t, "se": 0.01}
    more: dict[str, object] = {
        "lnE_futility": None,
        "lcb": None,
        "ucb": 0.5,
        "guards": {},
        "rule": "signflip-1",
    }
    return msgspec.convert({**fields, **more, "action": action}, e.Decision)


def verdict(n: int, kind: str, tries: int = 1) -> e.Verdict:
    measured = kind == "promoted"
    return msgspec.convert(
        {
            "attempt": n,
            "tries": tries,
            "verdict": kind,
            "reasons": [],
            "cells": {},
            "gain": 0.5 if measured else None,
            "interval": (0.4, 0.6) if measured else None,
            "marks": [],
            "notes": [],
        },
        e.Verdict,
    )


START: list[Strict] = [opened(), created(), lane(), started(1), submitted(1)]
JUDGED: list[Strict] = [*START, build(1), judge_started(1, 1), decision(1)]


def state_of(payloads: list[Strict]) -> State:
    return replay(
        (seq, event(p, assignment=None if seq == 1 else A)) for seq, p in enumerate(payloads, 1)
    )


def test_a_promotion_moves_the_champion_and_ends_the_attempt() -> None:
    state = state_of(JUDGED)
    assignment = state.assignments[A]
    follow = hill_climb.after_verdict(assignment, assignment.attempts[1], verdict(1, "promoted"))
    assert [type(p) for p in follow] == [e.Verdict, e.ChampionPromoted, e.AttemptEnded]
    for payload in follow:
        assert problem(state, event(payload)) is None
        fold(state, state.seq + 1, event(payload))
    assert assignment.champion == FAST
    assert assignment.attempts[1].result == "promoted"


@pytest.mark.parametrize(
    ("kind", "returns", "back"),
    [
        pytest.param("crash_infra", 0, True, id="B11-infrastructure is tried once more"),
        pytest.param("crash_infra", 1, False, id="B11-and only once"),
        pytest.param("noisy_rig", 2, True, id="a noisy rig three times"),
        pytest.param("noisy_rig", 3, False, id="the fourth stands"),
        pytest.param("invalid", 0, False, id="a candidate's failure never"),
        pytest.param("crash_candidate", 0, False, id="nor its crash"),
    ],
)
def test_only_what_is_not_the_candidates_fault_is_judged_again(
    kind: str, returns: int, back: bool
) -> None:
    assignment = state_of([*START, build(1)]).assignments[A]
    attempt = assignment.attempts[1]
    attempt.infra_returns = attempt.noisy_returns = returns
    assert attempts.goes_back(assignment, attempt, verdict(1, kind)) is back


def test_a_try_again_takes_the_next_number_and_a_fresh_index() -> None:
    state = state_of([*START, build(1), judge_started(1, 1), verdict(1, "crash_infra")])
    assert state.assignments[A].attempts[1].tries == 2
    assert problem(state, event(build(1, tries=2))) is None
    assert problem(state, event(build(1, tries=3))) is not None
    fold(state, state.seq + 1, event(build(1, tries=2)))
    assert problem(state, event(judge_started(1, 1))) is not None
    assert problem(state, event(judge_started(1, 2))) is None


@pytest.mark.parametrize(
    ("before", "data", "why"),
    [
        pytest.param(START, verdict(1, "promoted"), "no confirm stage passed", id="no confirm"),
        pytest.param(START, verdict(1, "not_better"), "never built", id="no build"),
        pytest.param(START[:3], submitted(1), "never started", id="no attempt"),
        pytest.param(START, started(2), "has not ended", id="two attempts in one lane"),
        pytest.param([*START, build(1)], judge_started(1, 2), "index 2", id="an index skipped"),
        pytest.param(JUDGED, opened(), "first event only", id="opened twice"),
        pytest.param([], created(), "begins with ledger_opened", id="nothing before the opening"),
        pytest.param(START, created(), "exists already", id="created twice"),
    ],
)
def test_an_impossible_history_is_refused(before: list[Strict], data: Strict, why: str) -> None:
    found = problem(state_of(before), event(data))
    assert found is not None
    assert why in found


def test_a_promotion_needs_its_verdict_and_the_present_champion() -> None:
    state = state_of([*JUDGED, verdict(1, "promoted")])
    good = e.ChampionPromoted(
        attempt=1, commit=FAST, previous=BASE, gain=0.5, interval=(0.4, 0.6), marks=[]
    )
    assert problem(state, event(good)) is None
    stale = msgspec.structs.replace(good, previous=FAST)
    assert "champion" in str(problem(state, event(stale)))
    state = state_of([*JUDGED, verdict(1, "not_confirmed")])
    assert "no verdict" in str(problem(state, event(good)))


def test_an_attempt_belongs_to_an_assignment() -> None:
    found = problem(state_of(START), event(verdict(1, "invalid"), assignment=None))
    assert found == "verdict without an assignment"


def test_nothing_follows_the_end_of_an_assignment() -> None:
    end = e.AssignmentEnded(
        reason="stopped", champion=BASE, gain=None, interval=None, order_seed="0" * 64
    )
    state = state_of([*START[:3], end])
    assert "has ended" in str(problem(state, event(started(1))))


def test_the_budget_counts_no_attempt_that_the_rigs_end_cut_off() -> None:
    finished = e.AgentFinished(
        attempt=1, status="killed", stop_reason=None, turns=None, transcript=None
    )
    cut = e.AttemptEnded(attempt=1, result="killed")
    first: list[Strict] = [opened(), created(budget={"attempts": 1}), lane(), started(1)]
    state = state_of([*first, finished, cut])
    assert hill_climb.end_reason(state.assignments[A]) is None
    for payload in (started(2), submitted(2)):
        fold(state, state.seq + 1, event(payload))
    assert hill_climb.end_reason(state.assignments[A]) == "budget: attempts"


def test_the_same_tree_is_answered_by_the_attempt_that_judged_it() -> None:
    state = state_of([*JUDGED, verdict(1, "not_better")])
    assert attempts.duplicate_of(state.assignments[A], TREE) == 1
    state = state_of([*JUDGED, verdict(1, "crash_candidate")])
    assert attempts.duplicate_of(state.assignments[A], TREE) is None


def test_the_end_tells_the_re_anchors_gain_and_reveals_the_coin() -> None:
    promoted = e.ChampionPromoted(
        attempt=1, commit=FAST, previous=BASE, gain=0.9, interval=(0.8, 1.0), marks=[]
    )
    again = decision(None, "re_anchor", "stop", t=0.25)
    state = state_of([*JUDGED, verdict(1, "promoted"), promoted, again])
    end = hill_climb.the_end(state.assignments[A], "stopped", bytes(32))
    assert end.gain == pytest.approx(0.2840254)
    assert end.interval is not None
    assert end.interval[0] is None
    assert end.interval[1] == pytest.approx(0.6487213)
    assert end.order_seed == "0" * 64
    assert hill_climb.re_anchor_due(state.assignments[A], ending=True) is None


def test_who_goes_through_the_attempts_is_not_disturbed_by_one_that_starts() -> None:
    """A lane that went through them while another one started an attempt ended the harness."""
    events = [opened(), created(), lane(), started(1)]
    state = State()
    for seq, data in enumerate(events, 1):
        fold(state, seq, event(data))
    going = iter(state.assignments[A].attempts.values())
    fold(state, 5, event(started(2)))
    assert [attempt.started.attempt for attempt in going] == [1]
    assert list(state.assignments[A].attempts) == [1, 2]


def test_why_no_candidate_was_made_is_told_wherever_an_attempt_is_shown() -> None:
    """The ledger had it, and only `watch` said so."""
    refused = e.CandidateRefused(attempt=1, reason="changed outside", paths=["a.c", "b.c"])
    ended = e.AttemptEnded(attempt=1, result="refused")
    attempt = state_of([*START[:-1], refused, ended]).assignments[A].attempts[1]
    [told] = row(1, attempt).reasons
    assert told == "changed outside: a.c, b.c"


def test_a_measurement_that_was_cut_short_says_by_what() -> None:
    assignment = state_of(JUDGED).assignments[A]
    assignment.promotions.append(
        e.ChampionPromoted(
            attempt=1, commit=FAST, previous=BASE, gain=0.5, interval=(0.4, 0.6), marks=[]
        )
    )
    blocks = [
        e.Block(attempt=None, tries=1, stage="re_anchor", block=n, d={}, D=None, dropped=why)
        for n, why in enumerate([None, "steal", "steal, suspended"])
    ]
    assignment.re_anchors.append(ReAnchor(1, facts=[*blocks]))
    said = "was not measured again: 2 of 3 blocks were disturbed by the machine (steal, suspended)"
    assert headline(assignment).endswith(said)
