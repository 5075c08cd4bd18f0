"""Whole goal campaigns on a simulated rig, with a real ledger and real git."""

from pathlib import Path
from typing import Any

import msgspec

from tests.judge.job.simulated_desk import KIT
from tests.requirement import shows
from tests.simulated_campaign import Home, Life
from thermite.agent.brief import brief
from thermite.campaign.goal import met_weight
from thermite.ledger.replay import recorded
from thermite.schema.event import Block, GoalChecked, Run
from thermite.schema.kit import Verifier

WRONG = {"check": {"line": {"pass": False, "reasons": ["the edge is wrong"]}}}
MANIFEST = msgspec.structs.replace(
    KIT,
    verifiers={
        "sane": Verifier(cells=["small"], priority=1),
        "whole": Verifier(cells=["large", "held"], requires=["sane"]),
    },
)
GOALS: dict[str, Any] = {
    "campaign": "goal",
    "cells": [],
    "objective": None,
    "held_out_cells": ["held"],
    "goals": [
        {"id": "whole", "title": "all shapes", "verify": {"type": "code", "verifier": "whole"}},
        {
            "id": "fast",
            "title": "a small one in 30 ms",
            "weight": 3,
            "verify": {
                "type": "metric_threshold",
                "metric": "seconds",
                "cells": ["small"],
                "max": 0.03,
            },
        },
    ],
}
BASE = {"ms": 40, "at": {"256": WRONG}}
CANDIDATES: dict[str, dict[str, Any]] = {
    "a-broken": {"build": {"exit": 1, "log": "syntax error"}},
    "b-half": {"ms": 40},
    "c-fast": {"ms": 20, "at": {"256": WRONG}},
    "d-overfit": {"ms": 20, "at": {"192": WRONG}},
    "e-all": {"ms": 21},
    "f-late": {"ms": 19},
}
EXPECTED = {
    "a-broken": "invalid",
    "b-half": "goals_unmet",
    "c-fast": "goals_unmet",
    "d-overfit": "goals_unmet",
    "e-all": "goals_met",
}


def home(folder: Path, **changed: object) -> Home:
    return Home(folder, BASE, CANDIDATES, GOALS | changed, MANIFEST)


def results(life: Life) -> dict[str, str | None]:
    attempts = life.assignment.attempts.values()
    return {a.started.proposal or "": a.result for a in attempts if a.result != "killed"}


def checked(life: Life) -> list[tuple[str, str, str, bool]]:
    """What came of each goal, by proposal, of the tries that count."""
    return [
        (a.started.proposal or "", goal, which, one.met)
        for a in life.assignment.attempts.values()
        if a.result != "killed"
        for (goal, which), one in a.checked.items()
    ]


def test_a_goal_campaign_ends_with_the_first_candidate_that_meets_all(tmp_path: Path) -> None:
    life = Life(home(tmp_path))
    assert life.run()
    assignment = life.assignment
    assert results(life) == EXPECTED
    assert assignment.end_reason == "goals met"
    weights = [met_weight(assignment, a) for a in assignment.attempts.values()]
    assert weights == [0.0, 1.0, 3.0, 3.0, 4.0]
    assert assignment.promotions == []
    assert assignment.used_k == 0


def test_the_next_attempt_starts_from_the_best_and_the_earlier_when_equal(tmp_path: Path) -> None:
    life = Life(home(tmp_path))
    assert life.run()
    attempts = life.assignment.attempts
    start = life.assignment.project.commit
    assert attempts[1].started.base == attempts[2].started.base == start
    assert attempts[3].started.base == attempts[2].commit
    assert attempts[4].started.base == attempts[3].commit
    assert attempts[5].started.base == attempts[3].commit, "equal weight: the earlier one stays"
    ended = [
        r.event.data for r in recorded(life.home.rig.ledger, 0) if r.type == "assignment_ended"
    ]
    assert [one.champion for one in ended] == [attempts[5].commit]


def test_a_budget_ends_a_goal_campaign_that_is_not_met(tmp_path: Path) -> None:
    life = Life(home(tmp_path, budget={"attempts": 2}))
    assert life.run()
    assert life.assignment.end_reason == "budget: attempts"
    assert life.assignment.status == "ended"


def test_attempts_without_a_better_one_end_it_when_the_contract_says_so(tmp_path: Path) -> None:
    life = Life(home(tmp_path, stop={"stale_attempts": 1}))
    assert life.run()
    assert results(life) == {"a-broken": "invalid"}
    assert life.assignment.end_reason == "stop: stale_attempts"


@shows("K-164")
def test_a_worker_reads_the_goal_report_and_nothing_of_the_hidden_pass(tmp_path: Path) -> None:
    reason = "v" * 500 + "w" * 500
    wrong = {"check": {"line": {"pass": False, "reasons": [reason]}}}
    secret = {"check": {"line": {"pass": False, "reasons": ["the held one is 192"]}}}
    said = {"a": {"ms": 20, "at": {"256": wrong, "192": secret}}}
    life = Life(Home(tmp_path, BASE, said, GOALS, MANIFEST))
    assert life.run()
    told = brief(life.assignment, 0)
    assert "v" * 150 + "…" in told
    assert "v" * 151 not in told.split("# Goals")[1]
    assert "w" * 450 in told
    assert "hidden pass: 1 of 2 goals is unmet" in told
    assert told.index("whole: all shapes") < told.index("fast: a small one in 30 ms")
    for hidden in ("192", "held one", "held-out cells:"):
        assert hidden not in told


def test_no_run_of_a_pass_is_recorded_twice_over_a_kill(tmp_path: Path) -> None:
    one = home(tmp_path)
    Life(one).run(die_at=14)
    life = Life(one, seed=2)
    assert life.run()
    rows = [(row.type, row.event.data) for row in recorded(one.rig.ledger, 0)]
    runs = [(d.attempt, d.stage, d.cell, d.block) for _, d in rows if isinstance(d, Run)]
    measured = [run for run in runs if run[-1] is not None]
    # Goals may share a cell: each has runs of its own, numbered from 0.
    assert max(map(measured.count, measured)) <= len(GOALS["goals"])
    goals = [(d.attempt, d.goal, d.passed) for _, d in rows if isinstance(d, GoalChecked)]
    assert len(goals) == len(set(goals))
    assert sum(isinstance(d, Block) for _, d in rows) <= 1
