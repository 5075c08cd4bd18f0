# ruff: noqa: E501 (a row of the table is a line)
"""The contract: every rule, at its place, and all problems at once."""

import json
import tomllib
from typing import Any

import msgspec
import pytest

from tests.schema.contracts import (
    COMMIT,
    GOAL,
    GONE,
    HILL_CLIMB,
    PROJECT,
    RESEARCH,
    bent,
    contract,
    problems,
)
from thermite.schema.contract import Contract, Judging
from thermite.schema.contract_rules import cell_problems, fewest_blocks
from thermite.schema.contract_text import read_contract, read_toml_contract
from thermite.schema.kit import Problem

GUARD = {"metric": "acc"}
TWO_GOALS = [{"id": "a", "title": "", "verify": {"type": "code", "verifier": "v"}}] * 2
THRESHOLD = {"type": "metric_threshold", "metric": "m", "cells": ["small"]}


def threshold(**more: object) -> tuple[str, object]:
    return "goals", [{"id": "a", "title": "", "verify": THRESHOLD | more}]


@pytest.mark.parametrize("whole", [HILL_CLIMB, GOAL, RESEARCH], ids=lambda one: one["campaign"])
def test_a_small_contract_of_each_kind_has_no_problem(whole: dict[str, Any]) -> None:
    assert problems(whole) == []
    assert contract(whole).judging == Judging()
    assert contract(whole).project.editable == ["**"]


@pytest.mark.parametrize("whole", [HILL_CLIMB, GOAL, RESEARCH], ids=lambda one: one["campaign"])
def test_a_contract_that_was_written_out_with_all_defaults_reads_the_same(
    whole: dict[str, Any],
) -> None:
    written = msgspec.json.encode(contract(whole))
    assert read_contract(written) == contract(whole)


@pytest.mark.parametrize(
    ("whole", "change", "said"),
    [
        pytest.param(HILL_CLIMB, ("x", 1), "x: unknown field: take it out", id="unknown field"),
        pytest.param(HILL_CLIMB, ("objective/primary/metrics", 1), "objective.primary.metrics: unknown field: did you mean metric?", id="unknown field, deep"),
        pytest.param(HILL_CLIMB, ("judging/screen_alfa", 1), "judging.screen_alfa: unknown field: did you mean screen_alpha?", id="unknown field of judging"),
        pytest.param(HILL_CLIMB, ("agents/advisors/panel/x", 1), "agents.advisors.panel.x: unknown field: take it out", id="unknown field, four deep"),
        pytest.param(HILL_CLIMB, ("schema_version", 2), "schema_version: needs 1, and is 2 (this build reads schema version 1)", id="version"),
        pytest.param(HILL_CLIMB, ("name", "A"), 'name: needs text matching ^[a-z0-9][a-z0-9._-]{0,63}$, and is "A"', id="name"),
        pytest.param(HILL_CLIMB, ("campaign", "climb"), 'campaign: needs hill_climb, goal or research, and is "climb"', id="kind"),
        pytest.param(HILL_CLIMB, ("task", ""), 'task: needs text that is not empty, and is ""', id="task"),
        pytest.param(HILL_CLIMB, ("project/commit", "HEAD"), "project.commit: needs a full commit id: 40 or 64 lower-case hex digits", id="commit"),
        pytest.param(HILL_CLIMB, ("project/kit/commit", "abc"), "project.kit.commit: needs a full commit id: 40 or 64 lower-case hex digits", id="kit's commit"),
        pytest.param(HILL_CLIMB, ("project/kit/repo", "../x"), 'project.kit.repo: needs text matching ^[a-z0-9][a-z0-9._-]{0,63}$, and is "../x"', id="kit's repo"),
        pytest.param(HILL_CLIMB, ("project/kit", GONE), "project.kit: missing: a hill_climb contract names its kit", id="kit missing"),
        pytest.param(GOAL, ("project/kit", None), "project.kit: missing: a goal contract names its kit", id="kit null"),
        pytest.param(RESEARCH, ("project", PROJECT), "project.kit: a research contract has no kit: take it out", id="research kit"),
        pytest.param(HILL_CLIMB, ("project/editable", []), "project.editable: needs a list of text, at least one, and has 0", id="nothing editable"),
        pytest.param(HILL_CLIMB, ("project/editable", ["a\nb"]), "project.editable[0]: a pattern has no line break or NUL", id="pattern with a line break"),
        pytest.param(HILL_CLIMB, ("objective", GONE), "objective: missing: a hill_climb contract says what is improved", id="no objective"),
        pytest.param(HILL_CLIMB, ("objective/primary/direction", "up"), 'objective.primary.direction: needs max or min, and is "up"', id="direction"),
        pytest.param(HILL_CLIMB, ("objective/min_effect", 0), "objective.min_effect: needs a number above 0, and is 0", id="min_effect 0"),
        pytest.param(HILL_CLIMB, ("objective/min_effect", "3%"), 'objective.min_effect: needs a number above 0, and is "3%"', id="min_effect as text"),
        pytest.param(HILL_CLIMB, ("objective/weights", {"small": 1, "large": 0}), "objective.weights.large: needs a number above 0, and is 0", id="weight 0"),
        pytest.param(HILL_CLIMB, ("objective/weights", {"small": 1, "large": 1, "held": 1}), "objective.weights.held: objective.weights names cell held, which is not in cells", id="weight of a held-out cell"),
        pytest.param(HILL_CLIMB, ("objective/weights", {"small": 1}), "objective.weights: objective.weights has no weight for cell large", id="weight missing"),
        pytest.param(HILL_CLIMB, ("held_out_cells", ["small"]), "held_out_cells[0]: held_out_cells names cell small, which cells names too", id="cell in both lists"),
        pytest.param(HILL_CLIMB, ("cells", ["a", "b", "a"]), "cells[2]: cells names cell a twice", id="cell twice"),
        pytest.param(HILL_CLIMB, ("guards", [GUARD | {"cells": ["held"]}]), "guards[0].cells[0]: a guard names cell held, which is not in cells", id="guard's cell"),
        pytest.param(HILL_CLIMB, ("guards", [{"metric": "flops_per_s"}]), "guards[0].metric: a guard names metric flops_per_s, which is the objective's own", id="guard on the primary"),
        pytest.param(HILL_CLIMB, ("guards", [GUARD | {"allowed_loss": 1}]), "guards[0].allowed_loss: needs a number of at least 0 and below 1, and is 1", id="allowed_loss 1"),
        pytest.param(HILL_CLIMB, ("hard_constraints", [{"metric": "acc"}]), "hard_constraints[0]: needs min or max, or both", id="no bound"),
        pytest.param(HILL_CLIMB, ("hard_constraints", [{"metric": "acc", "min": 2, "max": 1}]), "hard_constraints[0].min: min 2 is above max 1", id="bounds crossed"),
        pytest.param(HILL_CLIMB, ("hard_constraints", [{"metric": "acc", "min": 2, "cells": ["q"]}]), "hard_constraints[0].cells[0]: a hard constraint names cell q, which is in neither list of cells", id="constraint's cell"),
        pytest.param(HILL_CLIMB, ("goals", TWO_GOALS[:1]), "goals: a hill_climb contract has no goals: take it out", id="goals of a hill climb"),
        pytest.param(HILL_CLIMB, ("mcp_servers", [{"name": "a", "agents": ["workers"]}]), "mcp_servers: a hill_climb contract names no MCP servers: its kit does", id="servers of a hill climb"),
        pytest.param(HILL_CLIMB, ("models", ["A" * 64]), f'models[0]: needs text matching ^[0-9a-f]{{64}}$, and is "{"A" * 60}\\u2026"', id="model"),
        pytest.param(HILL_CLIMB, ("isolation", "best"), 'isolation: needs protected, users, users+namespaces or any, and is "best"', id="isolation"),
        pytest.param(HILL_CLIMB, ("agents/workers", {"lanes": 1}), "agents.workers.backend: missing: needs text that is not empty", id="backend"),
        pytest.param(HILL_CLIMB, ("agents/workers", {"backend": "replay", "lanes": 0}), "agents.workers.lanes: needs an integer of at least 1, and is 0", id="lanes"),
        pytest.param(HILL_CLIMB, ("budget/attempts", 0), "budget.attempts: needs an integer of at least 1, and is 0", id="attempts"),
        pytest.param(HILL_CLIMB, ("budget/wall_s", -1), "budget.wall_s: needs a number above 0, and is -1", id="wall_s"),
        pytest.param(HILL_CLIMB, ("stop/gain", 0), "stop.gain: needs a number above 0, and is 0", id="stop gain"),
        pytest.param(HILL_CLIMB, ("judging/screen_alpha", 1), "judging.screen_alpha: needs a number above 0 and below 1, and is 1", id="alpha 1"),
        pytest.param(HILL_CLIMB, ("judging/min_blocks", 31), "judging.min_blocks: judging.min_blocks is 31, and judging.max_blocks is 30", id="blocks crossed"),
        pytest.param(HILL_CLIMB, ("judging/confirm_max_blocks", 9), "judging.confirm_max_blocks", id="confirm too short"),
        pytest.param(HILL_CLIMB, ("judging/infra_retries", 2), "judging.infra_retries: needs 0 or 1, and is 2", id="retries"),
        pytest.param(HILL_CLIMB, ("judging/rule", "median"), 'judging.rule: needs signflip-1 or signflip-2, and is "median"', id="rule"),
        pytest.param(HILL_CLIMB, ("judging/suspect_gain", 1), "judging.suspect_gain: needs a number above 1, and is 1", id="suspect gain"),
        pytest.param(GOAL, ("goals", []), "goals: missing: a goal contract has at least one goal", id="no goal"),
        pytest.param(GOAL, ("goals", TWO_GOALS), "goals[1].id: a stands twice", id="goal id twice"),
        pytest.param(GOAL, ("cells", ["a"]), "cells: a goal contract has no cells: take it out", id="cells of a goal contract"),
        pytest.param(GOAL, ("goals/0/verify", {"type": "vote"}), 'goals[0].verify.type: needs code, metric_threshold or review, and is "vote"', id="kind of goal"),
        pytest.param(GOAL, ("goals/0/verify", {}), "goals[0].verify.type: missing: needs code, metric_threshold or review", id="no kind of goal"),
        pytest.param(GOAL, threshold(), "goals[0].verify: needs min or max, and has neither", id="threshold without bound"),
        pytest.param(GOAL, threshold(min=1, max=2), "goals[0].verify: needs min or max, and has both", id="threshold with both"),
        pytest.param(GOAL, threshold(min=1, runs=9), "goals[0].verify.runs: needs an integer of at least 10 and of at most 1000, and is 9", id="threshold runs"),
        pytest.param(RESEARCH, ("goals", TWO_GOALS[:1]), "goals[0].verify.type: a research contract has review goals only", id="research goal"),
        pytest.param(RESEARCH, ("judging", {"min_blocks": 6}), "judging: a research contract has no judging: take it out", id="research judging"),
        pytest.param(RESEARCH, ("mcp_servers", [{"name": f"s{i}", "agents": ["planner"]} for i in range(21)]), "mcp_servers: needs a list with at most 20, and has 21", id="K-080-21"),
        pytest.param(RESEARCH, ("mcp_servers", [{"name": "s", "agents": ["planner"], "tools": {"workers": ["x"]}}]), "mcp_servers[0].tools.workers: the workers do not get this server: add workers to agents, or take out its tools", id="K-080-tools"),
    ],
)  # fmt: skip
def test_one_fault_is_one_problem_at_its_place(
    whole: dict[str, Any], change: tuple[str, object], said: str
) -> None:
    found = problems(whole, change)
    if said == "judging.confirm_max_blocks":
        found = [one for one in found if one.startswith(said)]
        assert "to be confirmed: set it to 10" in found[0]
    else:
        assert found == [said]


@pytest.mark.parametrize(
    ("change", "rest"),
    [
        pytest.param((("judging/confirm_max_blocks", 10), ("budget/attempts", 100)), "", id="200 k"),
        pytest.param((("judging/confirm_max_blocks", 10), ("budget/attempts", 101)), "judging.confirm_max_blocks is 10, and attempt 202 needs at least 11 blocks to be confirmed: set it to 11, or plan at most 100 attempts", id="k 202"),
        pytest.param((("judging/confirm_max_blocks", 11), ("budget/attempts", 200)), "", id="k 400"),
        pytest.param((("judging/confirm_max_blocks", 11), ("budget/attempts", 201), ("judging/infra_retries", 0)), "", id="k 201 without retries"),
        pytest.param((("judging/confirm_max_blocks", 20), ("budget/attempts", 1100)), "", id="k 2200"),
        pytest.param((("judging/confirm_max_blocks", 20), ("budget/attempts", 1101)), "judging.confirm_max_blocks is 20, and attempt 2202 needs at least 21 blocks to be confirmed: set it to 21, or plan at most 1100 attempts", id="k 2202"),
        pytest.param((("budget/attempts", 3100),), "", id="k 6200"),
        pytest.param((("budget/attempts", 10**15),), "plan at most 3100 attempts", id="a quadrillion attempts"),
        pytest.param((("judging/max_blocks", 5),), "judging.max_blocks is 5, and a screen needs at least 6 blocks to pass: set it to 6", id="screen"),
        pytest.param((("judging/max_blocks", 6),), "", id="screen at its least"),
        pytest.param((("judging/confirm_min_blocks", 1), ("judging/confirm_max_blocks", 2)), "attempt 100 needs at least 10 blocks to be confirmed: set it to 10", id="no number of attempts would do"),
    ],
)  # fmt: skip
def test_a_stage_that_can_never_pass_is_refused_with_the_number_that_would(
    change: tuple[tuple[str, object], ...], rest: str
) -> None:
    found = problems(HILL_CLIMB, *change)
    assert len(found) == (1 if rest else 0)
    assert found == [] or found[0].endswith(rest)


def test_the_fewest_blocks_are_those_of_the_judging_page() -> None:
    assert [fewest_blocks(one) for one in (0.0, 3.912, 6.6846, 7.3777)] == [1, 6, 10, 11]


def test_all_problems_come_at_once_in_the_document_s_order() -> None:
    found = problems(
        HILL_CLIMB,
        ("name", 1),
        ("held_out_cells", ["small", 3]),
        ("guards", [{"metric": "flops_per_s", "allowed_loss": "1"}]),
        ("judging", {"min_blocks": 0, "guard_alpha": 2}),
        ("task", GONE),
    )
    assert [one.partition(": ")[0] for one in found] == [
        "name",
        "held_out_cells[0]",
        "held_out_cells[1]",
        "guards[0].metric",
        "guards[0].allowed_loss",
        "judging.min_blocks",
        "judging.guard_alpha",
        "task",
    ]


def test_before_it_is_completed_a_contract_may_name_revisions_and_no_kit() -> None:
    change = ("project", {"repo": "matmul", "commit": "HEAD~1"})
    assert problems(HILL_CLIMB, change, completed=False) == []
    assert len(problems(HILL_CLIMB, change)) == 2
    assert isinstance(read_contract(json.dumps(bent(HILL_CLIMB, change)).encode()), list)
    toml = TOML.replace(COMMIT, "HEAD").replace("b" * 40, "main")
    assert isinstance(read_toml_contract(toml.encode()), Contract)


def test_null_may_stand_where_nothing_is_a_choice() -> None:
    found = contract(HILL_CLIMB, ("judging/cell_allowed_loss", None), ("budget/usd", None))
    assert found.judging.cell_allowed_loss is None
    assert problems(HILL_CLIMB, ("judging/min_blocks", None)) == [
        "judging.min_blocks: null is not a value here: leave the field out"
    ]


def test_integers_may_stand_for_fractions() -> None:
    found = contract(HILL_CLIMB, ("budget/wall_s", 60))
    assert (found.budget.wall_s, type(found.budget.wall_s)) == (60.0, float)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        pytest.param(b"[]", "the contract needs to be one object", id="list"),
        pytest.param(b"\xef\xbb\xbf{}", "byte-order mark", id="C3-mark"),
        pytest.param(json.dumps(HILL_CLIMB).encode("utf-16"), "UTF-16", id="C3-utf-16"),
        pytest.param(b'{"name": "a", "name": "b"}', "stands twice", id="duplicate"),
        pytest.param(json.dumps(HILL_CLIMB).encode() + b" " * (128 << 10), "at most 131072", id="too long"),
        pytest.param(b'{"a":' * 40 + b"1" + b"}" * 40, "more than 29 levels", id="too deep"),
    ],
)  # fmt: skip
def test_what_is_no_contract_is_refused_in_one_text(raw: bytes, said: str) -> None:
    found = read_contract(raw)
    assert isinstance(found, list)
    assert [said in one.text for one in found] == [True]


TOML = f"""
schema_version = 1
name = "faster"
campaign = "hill_climb"
task = "make it faster"
cells = ["small", "large"]
held_out_cells = ["held"]
project = {{ repo = "matmul", commit = "{COMMIT}", kit = {{ repo = "smoke-cpu", commit = "{"b" * 40}" }} }}
[objective]
primary = {{ metric = "flops_per_s" }}
"""


def test_toml_says_the_same() -> None:
    assert tomllib.loads(TOML) == HILL_CLIMB
    assert read_toml_contract(TOML.encode(), completed=True) == contract(HILL_CLIMB)
    assert read_toml_contract(TOML.replace('"faster"', "2026-01-01").encode()) == [
        Problem(
            place="name",
            text='needs text matching ^[a-z0-9][a-z0-9._-]{0,63}$, and is "2026-01-01"',
        )
    ]


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"\xff", id="not utf-8"),
        pytest.param(b"\xef\xbb\xbfa = 1", id="C3-mark"),
        pytest.param("a = 1".encode("utf-16"), id="C3-utf-16"),
        pytest.param(b"a = 1\na = 2", id="duplicate"),
        pytest.param(b"a = " + b"[" * 5000, id="deep"),
        pytest.param(b"a = " + b"9" * 5000, id="5000 digits"),
        pytest.param(b"# " + b"x" * (128 << 10), id="too long"),
    ],
)
def test_bad_toml_is_refused_in_words(raw: bytes) -> None:
    found = read_toml_contract(raw)
    assert isinstance(found, list)
    assert len(found) == 1
    assert found[0].text.startswith("the contract ")


def test_ranges_hold_when_a_struct_is_decoded_too() -> None:
    raw = json.dumps(bent(HILL_CLIMB, ("judging/screen_alpha", 2))).encode()
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(raw, type=Contract)


class Compared(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    times = 0

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_thirty_thousand_cells_take_no_hundred_million_comparisons() -> None:
    """As many fit into a contract's 128 KiB; a rig was busy with them for a quarter of a minute."""
    names = [Compared(f"c{number}") for number in range(30_000)]
    whole = {**HILL_CLIMB, "cells": names[:20_000], "held_out_cells": names[20_000:]}
    whole["hard_constraints"] = [{"metric": "m", "min": 1, "cells": names}]
    Compared.times = 0
    assert list(cell_problems(whole)) == []
    assert Compared.times < 3 * len(names)
