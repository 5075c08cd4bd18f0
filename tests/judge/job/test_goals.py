"""Goals of a candidate, verified on a simulated rig: order, gates, passes, thresholds, kills."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.judge.job.simulated_desk import KIT, Killed, SimulatedDesk, contract
from tests.requirement import shows
from tests.simulated_rig import SimulatedRig, program
from thermite.judge.job import judge
from thermite.schema.contract import Contract
from thermite.schema.event import Block, Check, GoalChecked, Run, Verdict
from thermite.schema.job import JudgeFact
from thermite.schema.kit import Kit, Verifier

SHAPES = {
    "small": {"n": 128, "work": 1000},
    "large": {"n": 256, "work": 4000},
    "odd": {"n": 129, "work": 1000},
    "held": {"n": 192, "work": 2000},
}
WRONG: dict[str, Any] = {"check": {"line": {"pass": False, "reasons": ["the edge is wrong"]}}}


def kit(**verifiers: Verifier) -> Kit:
    return msgspec.structs.replace(KIT, cells=SHAPES, verifiers=verifiers)


def verifier(*cells: str, priority: int = 100, requires: tuple[str, ...] = ()) -> Verifier:
    return Verifier(cells=list(cells), priority=priority, requires=list(requires))


def code(name: str, weight: float = 1.0) -> dict[str, Any]:
    verify = {"type": "code", "verifier": name}
    return {"id": name, "title": f"{name} works", "verify": verify, "weight": weight}


def threshold(**fields: object) -> dict[str, Any]:
    verify = {"type": "metric_threshold", "metric": "seconds", "cells": ["small"]} | fields
    return {"id": "fast", "title": "fast enough", "verify": verify}


def goals(*wanted: dict[str, Any], **changed: object) -> Contract:
    """Return a goal contract."""
    plain: dict[str, object] = {
        "campaign": "goal",
        "cells": [],
        "objective": None,
        "held_out_cells": [],
    }
    return contract(**{**plain, "goals": list(wanted), **changed})


class Verified:
    """A candidate after its goals were verified."""

    def __init__(self, folder: Path, asked: Contract, of: Kit, said: bytes, **rig: object) -> None:
        folder.mkdir(exist_ok=True)
        self.rig = SimulatedRig(folder / "rig", **rig)  # type: ignore[arg-type]
        self.desk = SimulatedDesk(folder, {"new": said}, asked, self.rig, kit=of)

    def verdict(self, **changed: object) -> Verdict:
        job = self.desk.job(kind="goals", champion=None, **changed)
        found = judge(job, self.desk.desk())
        assert isinstance(found, Verdict)
        assert self.rig.is_idle
        return found

    @property
    def ran(self) -> list[tuple[str, str, int | None]]:
        """The runs in order: stage, cell, number."""
        return [(run.stage, run.cell, run.block) for run in self.desk.of(Run)]

    @property
    def checked(self) -> list[tuple[str, str, bool, list[str]]]:
        return [(c.goal, c.passed, c.met, c.reasons) for c in self.desk.of(GoalChecked)]


@shows("K-060")
def test_a_goal_is_met_when_every_cell_runs_and_passes_its_check(tmp_path: Path) -> None:
    asked, of = goals(code("all")), kit(all=verifier("small", "large", "odd"))
    good = Verified(tmp_path / "good", asked, of, program(ms=1))
    assert good.verdict().verdict == "goals_met"
    assert good.ran == [("visible", "small", 0), ("visible", "large", 0), ("visible", "odd", 0)]
    assert good.checked == [("all", "visible", True, [])]


@shows("K-060", "K-153")
def test_one_failing_cell_of_three_makes_the_goal_unmet_with_the_runs_reason(
    tmp_path: Path,
) -> None:
    asked, of = goals(code("all")), kit(all=verifier("small", "large", "odd"))
    crash = {"exit": 3, "stderr": "boom"}
    bad = Verified(tmp_path / "bad", asked, of, program(ms=1, at={"256": crash}))
    found = bad.verdict()
    assert found.verdict == "goals_unmet"
    assert found.reasons == ["goal all: exit 3: boom"]
    assert [cell for _, cell, _ in bad.ran] == ["small", "large", "odd"]
    assert bad.checked == [("all", "visible", False, ["exit 3: boom"])]
    [run] = [run for run in bad.desk.of(Run) if run.outcome != "ok"]
    assert (run.arm, run.cell, run.reason) == ("candidate", "large", "exit 3: boom")


@shows("K-063")
def test_goals_are_checked_by_priority_and_reported_in_the_contracts_order(tmp_path: Path) -> None:
    asked = goals(code("x"), code("y"))
    of = kit(x=verifier("small", priority=10), y=verifier("large", priority=9))
    one = Verified(tmp_path, asked, of, program(ms=1, **WRONG))
    found = one.verdict()
    assert [cell for _, cell, _ in one.ran] == ["large", "small"]
    assert [goal for goal, *_ in one.checked] == ["x", "y"]
    assert found.reasons == ["goal x: the edge is wrong", "goal y: the edge is wrong"]


@shows("K-064")
def test_a_gate_that_did_not_pass_lets_no_cell_behind_it_run(tmp_path: Path) -> None:
    asked = goals(code("top"))
    of = kit(
        top=verifier("large", requires=("left", "right")),
        left=verifier("small"),
        right=verifier("odd"),
    )
    one = Verified(tmp_path, asked, of, program(ms=1, at={"128": WRONG}))
    assert one.verdict().verdict == "goals_unmet"
    assert {cell for _, cell, _ in one.ran} == {"small", "odd"}
    said = "not run: it requires left, which did not pass"
    assert one.checked == [("top", "visible", False, [said])]


@shows("K-065")
@pytest.mark.parametrize(
    ("held_out", "gate", "top", "ran"),
    [
        pytest.param(["held"], "held", "small", ("visible", "small"), id="gate all held out"),
        pytest.param(["held"], "small", "held", ("hidden", "held"), id="gate none held out"),
    ],
)
def test_a_gate_without_cells_in_a_pass_does_not_block(
    tmp_path: Path, held_out: list[str], gate: str, top: str, ran: tuple[str, str]
) -> None:
    asked = goals(code("top"), held_out_cells=held_out)
    of = kit(top=verifier(top, requires=("gate",)), gate=verifier(gate))
    n = str(SHAPES[gate]["n"])
    one = Verified(tmp_path, asked, of, program(ms=1, at={n: WRONG}))
    assert one.verdict().verdict == "goals_met"
    assert ran in [(stage, cell) for stage, cell, _ in one.ran]


def test_held_out_cells_are_left_to_the_hidden_pass(tmp_path: Path) -> None:
    asked = goals(code("all"), held_out_cells=["held"])
    of = kit(all=verifier("held", "small"))
    one = Verified(tmp_path, asked, of, program(ms=1, at={"192": WRONG}))
    found = one.verdict()
    assert one.ran == [("visible", "small", 0), ("hidden", "held", 0)]
    assert one.checked == [
        ("all", "visible", True, []),
        ("all", "hidden", False, ["the edge is wrong"]),
    ]
    assert found.reasons == ["goal all on held-out cells: the edge is wrong"]


def test_D46_a_held_out_cell_that_the_kit_lacks_fails_as_no_cell(tmp_path: Path) -> None:  # noqa: N802
    asked = goals(code("all"), held_out_cells=["gone"])
    one = Verified(tmp_path, asked, kit(all=verifier("small")), program(ms=1))
    assert one.verdict().reasons == ["goal all on held-out cells: no cell gone"]
    assert one.checked == [("all", "visible", True, []), ("all", "hidden", False, ["no cell gone"])]


@shows("K-161")
def test_a_failed_cell_keeps_two_thousand_characters_of_its_reason(tmp_path: Path) -> None:
    words = "a" * 1500 + "b" * 1500
    said: dict[str, Any] = {"check": {"line": {"pass": False, "reasons": [words]}}}
    asked = goals(code("all"), threshold(max=1.0))
    one = Verified(tmp_path, asked, kit(all=verifier("large")), program(ms=1, **said))
    one.verdict()
    kept = ["a" * 500 + "…" + "b" * 1500]
    assert [reasons for *_, reasons in one.checked] == [kept, kept]


def test_a_clear_threshold_is_reached_on_evidence_after_ten_runs(tmp_path: Path) -> None:
    one = Verified(tmp_path, goals(threshold(max=0.05)), kit(), program(ms=40))
    assert one.verdict().verdict == "goals_met"
    assert one.ran == [("visible", "small", None), *[("visible", "small", n) for n in range(10)]]


def test_a_threshold_that_is_missed_says_by_how_much(tmp_path: Path) -> None:
    asked = goals(threshold(max=0.05, cells=["small", "large"], runs=12))
    one = Verified(tmp_path, asked, kit(), program(ms={"128": 60, "256": 20}), noise=0.0)
    assert one.verdict().reasons == ["goal fast: 12 runs, median 0.06 against 0.05"]
    assert sum(cell == "small" for _, cell, _ in one.ran) == 13
    assert sum(cell == "large" for _, cell, _ in one.ran) == 11


def test_a_value_equal_to_the_threshold_counts_against_it(tmp_path: Path) -> None:
    asked = goals(threshold(metric="accuracy", min=0.5))
    one = Verified(tmp_path, asked, kit(), program(ms=1))
    assert one.verdict().reasons == ["goal fast: 3 runs, median 0.5 against 0.5"]


def test_three_equal_values_of_the_check_decide_at_once(tmp_path: Path) -> None:
    asked = goals(threshold(metric="accuracy", min=0.4))
    one = Verified(tmp_path, asked, kit(), program(ms=1))
    assert one.verdict().verdict == "goals_met"
    assert len(one.ran) == 4


def test_disturbed_runs_decide_nothing(tmp_path: Path) -> None:
    asked = goals(threshold(max=0.05, runs=10))
    disturb = {n: {"suspended_ns": 10**9} for n in range(1, 11)}
    one = Verified(tmp_path, asked, kit(), program(ms=40), disturb=disturb)
    said = "goal fast: 10 runs, every one disturbed by the machine"
    assert one.verdict().reasons == [said]


def test_a_verifiers_run_needs_no_metric_of_the_kit(tmp_path: Path) -> None:
    only = program(ms=1, check={"line": {"pass": True}})
    one = Verified(tmp_path, goals(code("all")), kit(all=verifier("small")), only)
    assert one.verdict().verdict == "goals_met"


def test_a_candidate_that_does_not_build_is_verified_in_nothing(tmp_path: Path) -> None:
    broken = program(build={"exit": 1, "log": "syntax error"})
    one = Verified(tmp_path, goals(code("all")), kit(all=verifier("small")), broken)
    found = one.verdict()
    assert (found.verdict, one.ran) == ("invalid", [])
    assert found.reasons == ["build: build failed (exit 1)\nsyntax error"]


def test_the_same_outputs_are_answered_as_a_duplicate(tmp_path: Path) -> None:
    first = Verified(tmp_path, goals(code("all")), kit(all=verifier("small")), program(ms=1))
    first.verdict()
    outputs = first.desk.facts[0]
    answered = {outputs.outputs_digest: 7}  # type: ignore[attr-defined]
    again = Verified(tmp_path / "b", goals(code("all")), kit(all=verifier("small")), program(ms=1))
    found = again.verdict(judged_outputs=answered)
    assert found.verdict == "duplicate"
    assert found.reasons == ["the same build outputs were judged as attempt 7"]


def test_a_failure_of_the_rig_is_never_the_candidates(tmp_path: Path) -> None:
    of = kit(all=verifier("small", "large"))
    one = Verified(tmp_path, goals(code("all")), of, program(ms=1), break_at={1})
    assert one.verdict().verdict == "crash_infra"


def history(desk: SimulatedDesk) -> list[JudgeFact]:
    kinds = Run | Check | Block | GoalChecked
    return [fact for fact in desk.facts if isinstance(fact, kinds)]


def test_a_job_killed_at_any_append_comes_to_the_same_goals(tmp_path: Path) -> None:
    asked = goals(
        code("late"), threshold(max=0.05, cells=["small", "held"]), held_out_cells=["held"]
    )
    of = kit(late=verifier("large", "odd", requires=("gate",)), gate=verifier("small"))
    said = program(ms=40, at={"129": WRONG})
    whole = Verified(tmp_path / "whole", asked, of, said)
    wanted, appends = whole.verdict(), len(whole.desk.appended)
    for at in range(1, appends):
        one = Verified(tmp_path / str(at), asked, of, said)
        one.desk.kill_after = at
        with pytest.raises(Killed):
            one.verdict()
        one.desk.kill_after = None
        known = history(one.desk)
        remove = one.rig.folder  # a new process finds an empty rig
        one.rig = one.desk.rig = SimulatedRig(remove.with_name("second"))
        assert one.verdict(history=known).reasons == wanted.reasons, at
        assert one.checked == whole.checked, at
        assert one.ran == whole.ran, at


def test_a_candidate_that_fells_the_harness_four_times_ends(tmp_path: Path) -> None:
    of = kit(all=verifier("small", "large"))
    one = Verified(tmp_path, goals(code("all")), of, program(ms=1))
    one.desk.kill_after = 1
    with pytest.raises(Killed):
        one.verdict()
    one.desk.kill_after = None
    one.rig = one.desk.rig = SimulatedRig(tmp_path / "second")
    found = one.verdict(history=history(one.desk), interrupted=3)
    assert found.verdict == "crash_infra"
    assert found.reasons == ["interrupted 4 times: the harness was ended while this ran"]


def test_a_kit_for_another_target_judges_no_goal(tmp_path: Path) -> None:
    of = msgspec.structs.replace(kit(all=verifier("small")), target="cuda-gpu")
    one = Verified(tmp_path, goals(code("all")), of, program(ms=1))
    assert one.verdict().reasons == ["kit tiny measures cuda-gpu, this rig has cpu"]
