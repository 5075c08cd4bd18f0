"""Judging again: all of an honest ledger follows, and a changed run does not."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.audit.retold import events, lies, with_data
from tests.harness.test_goal_campaigns import BASE as GOAL_BASE
from tests.harness.test_goal_campaigns import CANDIDATES as GOAL_CANDIDATES
from tests.harness.test_goal_campaigns import GOALS, MANIFEST
from tests.judge.job.simulated_desk import KIT
from tests.simulated_campaign import Home, Life
from thermite.audit.changes import TYPES, changed, read_changes
from thermite.audit.rejudge import rejudge, rejudged
from thermite.cli.root import run
from thermite.errors import UsageError
from thermite.schema import event as e
from thermite.schema.rule import RuleParameters

CANDIDATES: dict[str, dict[str, Any]] = {
    "a-wrong": {"ms": 20, "check": {"line": {"pass": False, "reasons": ["no"]}}},
    "b-slow": {"ms": 60},
    "c-two": {"ms": 39.2},
    "d-fast": {"ms": 25},
}


@pytest.fixture(scope="module")
def climb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("climb")
    life = Life(Home(folder, {"ms": 40}, CANDIDATES))
    assert life.run()
    return Path(shutil.copy(life.home.rig.ledger, folder))


@pytest.fixture(scope="module")
def goals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("goals")
    life = Life(Home(folder, GOAL_BASE, GOAL_CANDIDATES, GOALS, MANIFEST))
    assert life.run()
    return Path(shutil.copy(life.home.rig.ledger, folder))


def test_all_of_a_hill_climb_follows_from_its_runs(climb: Path) -> None:
    found = rejudge(climb)
    assert found.differences == []
    assert found.blocks > 40
    assert found.verdicts == 4
    assert found.coins == 1


def test_all_of_a_goal_campaign_follows_from_its_runs(goals: Path) -> None:
    found = rejudge(goals)
    assert found.differences == []
    assert found.goals > 10


@pytest.mark.parametrize("cell", [pytest.param("c4", id="R9")])
def test_a_hold_for_one_of_seven_cells_follows_from_its_runs(tmp_path: Path, cell: str) -> None:
    cells = {f"c{n}": {"n": n, "work": 1000} for n in range(1, 8)}
    times = dict.fromkeys(map(str, range(1, 8)), 40) | {"4": 3}
    judging = {"hold_timeout_s": 1}
    asked = {"cells": list(cells), "held_out_cells": [], "judging": judging}
    kit = msgspec.structs.replace(KIT, cells=cells)
    life = Life(Home(tmp_path, {"ms": 40}, {"a": {"ms": times}}, asked, kit))
    assert life.run()
    verdict = life.assignment.attempts[1].verdict
    assert verdict is not None
    assert verdict.reasons[0] == "held for suspect_gain, nobody released it"
    assert verdict.reasons[1].startswith(f"cell {cell} by itself gained more than 10 times")
    assert rejudge(life.home.rig.ledger).differences == []
    before = rejudge(life.home.rig.ledger, {"judging.rule": "signflip-1"}).otherwise
    assert [(one.recorded, one.otherwise) for one in before] == [("not_confirmed", "promoted")]


@pytest.mark.parametrize("die_at", [9, 17, 24])
@pytest.mark.parametrize("after_commit", [False, True])
def test_a_ledger_of_two_lives_follows_from_its_runs(
    tmp_path: Path, die_at: int, *, after_commit: bool
) -> None:
    short = {"a-wrong": CANDIDATES["a-wrong"], "d-fast": CANDIDATES["d-fast"]}
    home = Home(tmp_path, {"ms": 40}, short)
    Life(home).run(die_at=die_at, after_commit=after_commit)
    assert Life(home, seed=2).run()
    assert rejudge(home.rig.ledger).differences == []


def test_a_goal_ledger_of_two_lives_follows_from_its_runs(tmp_path: Path) -> None:
    home = Home(tmp_path, GOAL_BASE, GOAL_CANDIDATES, GOALS, MANIFEST)
    Life(home).run(die_at=20)
    assert Life(home, seed=2).run()
    assert rejudge(home.rig.ledger).differences == []


def test_a_changed_run_time_is_found(climb: Path) -> None:
    told = events(climb)
    at = next(
        n
        for n, (_, event) in enumerate(told)
        if isinstance(event.data, e.Run) and event.data.stage == "confirm" and event.data.block == 3
    )
    record = msgspec.structs.replace(told[at][1].data.record, t_ns=10**7)
    found = rejudged(with_data(told, at, record=record))
    assert [one.what for one in found.differences][:2] == ["block", "decision"]


@given(choice=st.integers(0), factor=st.sampled_from([0.5, 0.97, 0.9999, 1.0001, 1.03, 40.0]))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_changed_time_of_a_run_that_counts_is_found(
    climb: Path, choice: int, factor: float
) -> None:
    told = events(climb)
    counted = {
        (data.attempt, data.tries, data.stage, data.block)
        for data in (event.data for _, event in told)
        if isinstance(data, e.Block) and data.dropped is None
    }
    runs = [
        at
        for at, (_, event) in enumerate(told)
        if isinstance(event.data, e.Run)
        and (event.data.attempt, event.data.tries, event.data.stage, event.data.block) in counted
    ]
    assert len(runs) > 100
    at = runs[choice % len(runs)]
    record = told[at][1].data.record
    record = msgspec.structs.replace(record, t_ns=round(record.t_ns * factor))
    changed_block = told[at][1].data
    found = rejudged(with_data(told, at, record=record)).differences
    assert (found[0].what, found[0].attempt) == ("block", changed_block.attempt)


@pytest.mark.parametrize(
    ("kind", "changed", "what"),
    [
        pytest.param(e.JudgeStarted, {"k": 7}, "index", id="index"),
        pytest.param(e.JudgeStarted, {"alpha_k": 0.5}, "alpha", id="alpha"),
        pytest.param(e.JudgeStarted, {"params": {}}, "event", id="no parameters"),
        pytest.param(e.Decision, {"lnE": 99.0}, "decision", id="evidence"),
        pytest.param(e.Decision, {"action": "pass"}, "decision", id="action"),
        pytest.param(e.ChampionPromoted, {"gain": 9.9}, "champion", id="gain of a champion"),
        pytest.param(e.AssignmentEnded, {"order_seed": "00" * 32}, "coin", id="coin"),
    ],
)
def test_what_does_not_follow_is_named(
    climb: Path, kind: type, changed: dict[str, object], what: str
) -> None:
    assert what in lies(events(climb), kind, {}, **changed)


@pytest.mark.parametrize("end", ["lcb", "ucb"])
@pytest.mark.parametrize("result", ["promoted", "regressed"])
def test_a_bound_that_the_blocks_do_not_give_is_found(climb: Path, end: str, result: str) -> None:
    told, of = events(climb), {"result": result}
    honest = next(d for _, d in told if isinstance(d.data, e.Decision) and d.data.result == result)
    bound = getattr(honest.data, end)
    assert lies(told, e.Decision, of, **{end: bound and bound + 5e-7}) == []
    for forged in ((bound or 0.0) + 4e-6, (bound or 0.0) - 4e-6, 9.0, -9.0, None):
        if forged is not bound:
            found = lies(told, e.Decision, of, **{end: forged})
            assert found[0] == "decision"


def test_no_bound_is_told_before_a_stage_ends(climb: Path) -> None:
    assert lies(events(climb), e.Decision, {"action": "continue"}, lcb=0.1) == ["decision"]


def test_an_interval_that_its_decision_does_not_tell_is_found(climb: Path) -> None:
    told, forged = events(climb), {"interval": (0.59, 0.61)}
    assert lies(told, e.Verdict, {"verdict": "promoted"}, **forged) == ["interval", "champion"]
    assert lies(told, e.Verdict, {"verdict": "regressed"}, **forged) == ["interval"]
    assert lies(told, e.ChampionPromoted, {}, **forged) == ["champion"]


@pytest.mark.parametrize(
    "forged", [{"gain": 9.9}, {"interval": (0.59, 0.61)}, {"champion": "0" * 40}, {"gain": None}]
)
def test_an_end_that_no_re_anchor_leads_to_is_found(climb: Path, forged: dict[str, object]) -> None:
    assert lies(events(climb), e.AssignmentEnded, {}, **forged) == ["end"]


def test_a_verdict_that_no_decision_leads_to_is_found(climb: Path) -> None:
    told = events(climb)
    at = next(
        n
        for n, (_, event) in enumerate(told)
        if isinstance(event.data, e.Verdict) and event.data.verdict == "regressed"
    )
    found = rejudged(with_data(told, at, verdict="not_better"))
    said = [(one.what, one.recorded, one.recomputed) for one in found.differences]
    assert said == [("verdict", "not_better", "regressed")]


def test_a_goal_that_is_not_met_is_found(goals: Path) -> None:
    told = events(goals)
    at = next(
        n
        for n, (_, event) in enumerate(told)
        if isinstance(event.data, e.GoalChecked) and not event.data.met
    )
    found = rejudged(with_data(told, at, met=True))
    first, *more = found.differences
    assert (first.recorded, first.recomputed) == ("met: True", "met: False")
    assert [one.what for one in more] == ["end"]  # another candidate is the best one then


def test_another_rule_is_tried_on_the_same_blocks(climb: Path) -> None:
    found = rejudge(climb, {"objective.min_effect": 0.8})
    assert found.differences == []
    assert [(one.recorded, one.otherwise) for one in found.otherwise] == [
        ("promoted", "not_better")
    ]


ENDS = "is no rule"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("objective.min_effect", "is no change", id="no value"),
        pytest.param("objective.min_effect=", "is no change", id="an empty value"),
        pytest.param("objective.min_effect=nan", "is no change", id="nan"),
        pytest.param("objective.min_effect=NaN", "is no change", id="NaN as JavaScript has it"),
        pytest.param("objective.min_effect=1 2", "is no change", id="two values"),
        pytest.param("judging.min_blocks=" + "9" * 5000, "is no change", id="a flood of digits"),
        pytest.param("budget.attempts=3", "is no parameter of the rule", id="no parameter"),
        pytest.param("judging.luck=1", "'judging.luck' is no parameter", id="none of the rule"),
        pytest.param("min_effect=1", "did you mean objective.min_effect?", id="half a name"),
        pytest.param("judging.max_block=1", "did you mean judging.max_blocks?", id="misspelt"),
        pytest.param("objective.cells=[]", "is no parameter of the rule", id="what was measured"),
        pytest.param("objective.min_effect=-1", ENDS, id="a loss"),
        pytest.param("objective.min_effect=0", ENDS, id="nothing"),
        pytest.param("objective.min_effect=null", ENDS, id="null"),
        pytest.param("objective.min_effect=1e400", "a number is too large", id="infinity"),
        pytest.param('objective.min_effect="0.1"', ENDS, id="a text"),
        pytest.param('objective.weights={"even": 1e999}', "too large", id="an infinite weight"),
        pytest.param('objective.weights={"even": 0}', ENDS, id="a weight of none"),
        pytest.param("judging.alpha_horizon=9007199254740992", "too large", id="beyond JSON"),
        pytest.param("judging.confirm_beta=1", ENDS, id="a chance of 1"),
        pytest.param("judging.min_blocks=2.5", ENDS, id="half a block"),
    ],
)
def test_a_change_that_is_none_is_refused_and_not_repeated_whole(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as error:
        read_changes([text])
    names = len(", ".join(TYPES)) if "is no parameter" in said else 0
    assert len(str(error.value)) < 300 + names


def test_a_change_is_given_once() -> None:
    with pytest.raises(UsageError, match=r"judging\.min_blocks is changed twice"):
        read_changes(["judging.min_blocks=4", "judging.min_blocks=5"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("judging.min_blocks=9999", "judging.min_blocks is 9999", id="bounds"),
        pytest.param('objective.weights={"odd": 2}', "names cell 'odd'", id="another cell"),
    ],
)
def test_what_the_recorded_rule_cannot_have_is_a_wrong_usage(
    climb: Path, text: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        rejudge(climb, read_changes([text]))


def test_a_rule_that_no_number_can_hold_is_its_giver_s_fault(climb: Path) -> None:
    with pytest.raises(UsageError, match="this rule comes to no verdict"):
        rejudge(climb, {"objective.min_effect": -1.0})


def test_other_weights_sum_up_to_1(climb: Path) -> None:
    p = next(
        msgspec.convert(event.data.params, RuleParameters)
        for _, event in events(climb)
        if isinstance(event.data, e.JudgeStarted)
    )
    given = {p.cells[0]: 3.0}
    weights = changed(p, read_changes([f"objective.weights={json.dumps(given)}"])).weights
    assert sum(weights.values()) == pytest.approx(1.0)
    assert weights[p.cells[0]] == pytest.approx(3.0 / (2.0 + len(p.cells)))


def test_the_command_ends_with_0_and_says_what_it_did(
    climb: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["audit", str(climb), "--rejudge", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rejudged"]["differences"] == []
    assert told["rejudged"]["runs"] > 100


def test_a_ledger_that_is_not_whole_is_not_judged_again(
    climb: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "ledger.db"
    with closing(sqlite3.connect(climb)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
        triggers = target.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        for (name,) in triggers.fetchall():
            target.execute(f"DROP TRIGGER {name}")
        target.execute("UPDATE events SET body = CAST(body || ' ' AS BLOB) WHERE seq = 5")
        target.commit()
    assert run(["audit", str(copy), "--rejudge"]) == 8
    assert "not judged again: what the audit found comes first" in capsys.readouterr().out
