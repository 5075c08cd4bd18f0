"""A goal campaign's order of verifiers, its gates, and what its goals are told."""

from collections.abc import Mapping

import pytest

from thermite.judge.verdict.goals import Course, Decided, Pass, Task, goal_reasons, told
from thermite.schema.contract import CodeGoal, Goal, ReviewGoal, ThresholdGoal
from thermite.schema.kit import Verifier


def goal(name: str, verifier: str | None = None) -> Goal:
    """A goal with a verifier, or with a threshold on cell a when none is given."""
    if verifier is not None:
        return Goal(id=name, title="", verify=CodeGoal(verifier=verifier))
    return Goal(id=name, title="", verify=ThresholdGoal(metric="m", cells=["a"], min=1.0))


def verifier(*requires: str, cells: str = "a", priority: int = 100) -> Verifier:
    return Verifier(cells=list(cells), priority=priority, requires=list(requires))


def course(
    goals: list[Goal],
    verifiers: Mapping[str, Verifier],
    *,
    held_out: str = "",
    which: Pass = "visible",
) -> Course:
    return Course(goals, verifiers, list(held_out), list("abcd"), which)


def through(one: Course, failing: Mapping[str, list[str]]) -> tuple[list[str], dict[Task, Decided]]:
    """Walk to the end; return what was run, each with its cells, and what came of it."""
    walk, ran = one.walk(), []
    try:
        step = next(walk)
        while True:
            ran.append(f"{step.task.name}:{''.join(step.cells)}")
            step = walk.send(failing.get(step.task.name, []))
    except StopIteration as over:
        return ran, over.value


def walked(one: Course, **failing: list[str]) -> list[str]:
    """Run all to the end; return what was run, each with its cells, in order."""
    return through(one, failing)[0]


def ended(one: Course, **failing: list[str]) -> dict[str, tuple[bool | None, list[str]]]:
    """Run all to the end; return the goals' outcomes in their order."""
    decided = through(one, failing)[1]
    return {name: (found.met, found.reasons) for name, found in one.reports(decided)}


@pytest.mark.parametrize(
    ("goals", "verifiers", "order"),
    [
        pytest.param(
            [goal("X", "x"), goal("Y", "y")],
            {"x": verifier(priority=10), "y": verifier(priority=9)},
            ["y:a", "x:a"],
            id="D41-9 before 10",
        ),
        pytest.param(
            [goal("X", "x"), goal("Y", "y")],
            {"x": verifier(priority=0), "y": verifier(priority=-1)},
            ["y:a", "x:a"],
            id="D41--1 before 0",
        ),
        pytest.param(
            [goal("2", "b"), goal("1", "a")],
            {"a": verifier(), "b": verifier()},
            ["b:a", "a:a"],
            id="D41-then the first goal that names it",
        ),
        pytest.param(
            [goal("1", "z")],
            {"b": verifier(), "a": verifier(), "z": verifier("b", "a")},
            ["a:a", "b:a", "z:a"],
            id="D41-then the name, for gates that no goal names",
        ),
        pytest.param(
            [goal("X", "x"), goal("Y", "y")],
            {
                "x": verifier("slow", priority=1),
                "slow": verifier(priority=50),
                "y": verifier(priority=9),
            },
            ["y:a", "slow:a", "x:a"],
            id="D41-a gate inherits no priority",
        ),
        pytest.param(
            [goal("X", "x"), goal("T"), goal("Y", "y")],
            {"x": verifier(), "y": verifier(priority=101)},
            ["x:a", "T:a", "y:a"],
            id="D41-a threshold counts as 100",
        ),
        pytest.param(
            [goal("X", "x"), goal("Y", "x")],
            {"x": verifier(), "unused": verifier()},
            ["x:a"],
            id="D42-named twice runs once, unnamed never",
        ),
        pytest.param(
            [goal("X", "x")], {"x": verifier(cells="cabc")}, ["x:cab"], id="D44-cells as listed"
        ),
    ],
)
def test_the_order_of_verifiers(
    goals: list[Goal], verifiers: Mapping[str, Verifier], order: list[str]
) -> None:
    assert walked(course(goals, verifiers)) == order


GATED = {"top": verifier("left", "right"), "left": verifier(), "right": verifier()}


def test_D43_gates_that_did_not_pass_are_named_and_no_cell_runs() -> None:  # noqa: N802
    one = course([goal("T", "top"), goal("R", "right")], GATED)
    assert walked(one, left=["bad"], right=["worse"]) == ["right:a", "left:a"]
    assert ended(one, left=["bad"], right=["worse"]) == {
        "T": (False, ["not run: it requires left, right, which did not pass"]),
        "R": (False, ["worse"]),
    }
    assert ended(one, right=["worse"])["T"] == (
        False,
        ["not run: it requires right, which did not pass"],
    )
    assert ended(one) == {"T": (True, []), "R": (True, [])}


def test_D43_what_is_not_run_closes_the_gates_behind_it() -> None:  # noqa: N802
    chain = {"a": verifier(), "b": verifier("a"), "c": verifier("b")}
    one = course([goal("C", "c")], chain)
    assert walked(one, a=["no"]) == ["a:a"]
    assert ended(one, a=["no"])["C"][1] == ["not run: it requires b, which did not pass"]


@pytest.mark.parametrize("which", ["visible", "hidden"])
def test_D45_a_gate_without_cells_in_this_pass_does_not_block(which: Pass) -> None:  # noqa: N802
    cells = {"visible": ("b", "a"), "hidden": ("a", "b")}[which]
    verifiers = {
        "top": verifier("empty", cells=cells[1]),
        "empty": verifier("closed", cells=cells[0]),
        "closed": verifier(cells=cells[1]),
    }
    one = course([goal("T", "top"), goal("E", "empty")], verifiers, held_out="b", which=which)
    assert walked(one, closed=["no"]) == [f"closed:{cells[1]}", f"top:{cells[1]}"]
    assert ended(one, closed=["no"]) == {"T": (True, []), "E": (None, [])}


def test_each_pass_runs_its_own_cells() -> None:
    goals, verifiers = [goal("X", "x"), goal("T")], {"x": verifier(cells="abc")}
    assert walked(course(goals, verifiers, held_out="bd")) == ["x:ac", "T:a"]
    assert walked(course(goals, verifiers, held_out="bd", which="hidden")) == ["x:b"]


def test_D46_a_held_out_cell_that_the_kit_lacks_fails_every_goal() -> None:  # noqa: N802
    goals, verifiers = [goal("X", "x"), goal("T")], {"x": verifier(cells="ab")}
    one = course(goals, verifiers, held_out="bzy", which="hidden")
    assert walked(one) == []
    lacks = (False, ["no cell z", "no cell y"])
    assert ended(one) == {"X": lacks, "T": lacks}
    assert walked(course(goals, verifiers, held_out="bzy")) == ["x:a", "T:a"]


def test_goals_are_reported_in_the_contracts_order_without_reviews() -> None:
    review = Goal(id="R", title="", verify=ReviewGoal(question="?", quorum=1))
    verifiers = {"late": verifier(priority=200), "early": verifier(priority=1)}
    one = course([goal("L", "late"), review, goal("E", "early")], verifiers)
    assert walked(one) == ["early:a", "late:a"]
    assert list(ended(one)) == ["L", "E"]


def test_D44_each_failed_cell_has_its_reason_within_its_budget() -> None:  # noqa: N802
    assert goal_reasons(["one", "two"]) == ["one", "two"]
    assert goal_reasons(["x" * 3000]) == ["x" * 500 + "…" + "x" * 1500]
    [joined] = goal_reasons(["x" * 3000, "y" * 3000, "z" * 3000])
    assert len(joined) == 4001
    both = told(["x" * 400, "y" * 400])
    assert both == "x" * 150 + "…" + "x" * 48 + "; " + "y" * 400


def test_a_chain_of_two_thousand_gates_is_walked() -> None:
    chain = {"v0": verifier()} | {f"v{n}": verifier(f"v{n - 1}") for n in range(1, 2000)}
    one = course([goal("G", "v1999")], chain)
    ran, decided = through(one, {})
    assert (ran[0], ran[-1], len(decided)) == ("v0:a", "v1999:a", 2000)
