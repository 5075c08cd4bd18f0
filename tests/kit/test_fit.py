# ruff: noqa: E501 (a row of the table is a line)
"""The kit against the contract (K-190 to K-204, D40)."""

import msgspec
import pytest

from tests.kit.seed import kit
from tests.schema.contracts import GOAL, HILL_CLIMB, contract
from thermite.kit.fit import DOES_NOT_FIT, fit_problems
from thermite.schema.contract import Contract, Guard, Judging
from thermite.schema.kit import Kit

KIT: Kit = kit(
    ("metrics/acc", {"from": "check", "field": "accuracy"}),
    ("verifiers", {"v": {"cells": ["small"]}}),
)


def goals(*verify: dict[str, object]) -> Contract:
    return contract(
        GOAL,
        ("goals", [{"id": f"g{i}", "title": "", "verify": one} for i, one in enumerate(verify)]),
    )


def threshold(metric: str, *cells: str) -> dict[str, object]:
    return {"type": "metric_threshold", "metric": metric, "cells": list(cells), "min": 1}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(("name", "x"), None, id="K-190-fits"),
        pytest.param(("cells", ["small", "no"]), "cells names cell no, which the kit does not have", id="K-191"),
        pytest.param(("held_out_cells", ["no"]), "held_out_cells names cell no, which the kit does not have", id="K-192"),
        pytest.param(("objective/primary/metric", "no"), "the objective names metric no, which the kit does not have", id="K-193"),
        pytest.param(("objective/secondary", [{"metric": "no"}]), "a secondary objective names metric no, which the kit does not have", id="K-194"),
        pytest.param(("guards", [{"metric": "no"}]), "a guard names metric no, which the kit does not have", id="K-195"),
        pytest.param(("hard_constraints", [{"metric": "no", "min": 1}]), "a hard constraint names metric no, which the kit does not have", id="K-196-min"),
        pytest.param(("hard_constraints", [{"metric": "no", "max": 1}]), "a hard constraint names metric no, which the kit does not have", id="K-196-max"),
        pytest.param(("hard_constraints", [{"metric": "acc", "min": 1}]), None, id="K-196-fits"),
        pytest.param(("monitor_only", ["no", {"metric": "no"}]), None, id="K-202-monitor-only"),
    ],
)  # fmt: skip
def test_a_hill_climb_names_what_the_kit_has(change: tuple[str, object], said: str | None) -> None:
    assert fit_problems(KIT, contract(HILL_CLIMB, change), "cpu") == ([said] if said else [])


@pytest.mark.parametrize(
    ("verify", "said"),
    [
        pytest.param({"type": "code", "verifier": "v"}, None, id="K-197-fits"),
        pytest.param({"type": "code", "verifier": "no"}, "goal g0 names verifier no, which the kit does not have", id="K-197"),
        pytest.param(threshold("no", "small"), "goal g0 names metric no, which the kit does not have", id="K-198"),
        pytest.param(threshold("accuracy", "small"), "goal g0 names metric accuracy, which the kit does not have", id="K-204-undeclared-field"),
        pytest.param(threshold("acc", "small", "no"), "goal g0 names cell no, which the kit does not have", id="K-199"),
        pytest.param({"type": "review", "question": "?", "quorum": 1}, None, id="D40-review"),
    ],
)  # fmt: skip
def test_a_goal_names_what_the_kit_has(verify: dict[str, object], said: str | None) -> None:
    assert fit_problems(KIT, goals(verify), "cpu") == ([said] if said else [])


def test_K_203_held_out_cells_of_a_goal_contract_are_not_checked() -> None:  # noqa: N802
    assert fit_problems(KIT, contract(GOAL, ("held_out_cells", ["no"])), "cpu") == []


def test_K_190_the_kit_measures_on_the_rig_s_target() -> None:  # noqa: N802
    said = "the kit measures on cpu, and this rig's target is cuda-gpu"
    assert fit_problems(KIT, contract(HILL_CLIMB), "cuda-gpu") == [said]
    assert fit_problems(KIT, contract(GOAL), "cuda-gpu") == [said]


def test_D40_problems_come_in_the_page_s_order_and_once() -> None:  # noqa: N802
    bad = contract(
        HILL_CLIMB,
        ("hard_constraints", [{"metric": "no", "min": 1}]),
        ("guards", [{"metric": "no"}, {"metric": "no"}, {"metric": "also"}]),
        ("objective", {"primary": {"metric": "p"}, "secondary": [{"metric": "s"}]}),
        ("cells", ["x", "small"]),
        ("held_out_cells", ["y"]),
    )
    assert fit_problems(KIT, bad, "gpu") == [
        "the kit measures on cpu, and this rig's target is gpu",
        "cells names cell x, which the kit does not have",
        "held_out_cells names cell y, which the kit does not have",
        "the objective names metric p, which the kit does not have",
        "a secondary objective names metric s, which the kit does not have",
        "a guard names metric no, which the kit does not have",
        "a guard names metric also, which the kit does not have",
        "a hard constraint names metric no, which the kit does not have",
    ]


def test_D40_goal_problems_come_by_kind_then_by_goal() -> None:  # noqa: N802
    bad = goals(threshold("m", "c"), {"type": "code", "verifier": "w"}, threshold("n", "c", "d"))
    assert fit_problems(KIT, bad, "cpu") == [
        "goal g1 names verifier w, which the kit does not have",
        "goal g0 names metric m, which the kit does not have",
        "goal g2 names metric n, which the kit does not have",
        "goal g0 names cell c, which the kit does not have",
        "goal g2 names cell c, which the kit does not have",
        "goal g2 names cell d, which the kit does not have",
    ]


def test_ours_are_held_against_a_contract_that_was_never_read() -> None:
    bad = msgspec.structs.replace(
        contract(HILL_CLIMB),
        held_out_cells=["small"],
        guards=[Guard(metric="flops_per_s"), Guard(metric="acc", cells=["held"])],
        judging=Judging(max_blocks=5, confirm_max_blocks=9),
    )
    assert fit_problems(KIT, bad, "cpu") == [
        "held_out_cells names cell small, which cells names too",
        "a guard names metric flops_per_s, which is the objective's own",
        "a guard names cell held, which is not in cells",
        "judging.max_blocks is 5, and a screen needs at least 6 blocks to pass: set it to 6",
        (
            "judging.confirm_max_blocks is 9, and attempt 100 needs at least 10 blocks to be confirmed:"
            " set it to 10"
        ),
    ]


def test_a_name_can_t_forge_a_line_of_its_own() -> None:
    bad = contract(HILL_CLIMB, ("cells", ["small", "x\ncells are fine"]))
    assert fit_problems(KIT, bad, "cpu") == [
        "cells names cell x\\ncells are fine, which the kit does not have"
    ]


def test_the_words_before_the_problems_are_the_page_s() -> None:
    assert DOES_NOT_FIT == "the kit does not fit the contract: "
