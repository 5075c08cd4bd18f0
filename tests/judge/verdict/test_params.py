"""From contract to parameters: defaults by target, guards by cell, stages that can't pass."""

import msgspec
import pytest

from thermite.judge.verdict.params import alpha_k, rule_parameters
from thermite.schema.contract import Contract, Judging
from thermite.schema.contract_rules import evidence_problems
from thermite.schema.kit import (
    BuildSection,
    CheckMetric,
    CheckSection,
    Kit,
    RateMetric,
    RunSection,
    TimeMetric,
)
from thermite.schema.rule import RuleParameters

KIT = Kit(
    schema_version=1,
    name="tiny",
    target="cpu",
    build=BuildSection(command=["sh", ".kit/build.sh"], outputs=["out"]),
    cells={"small": {"n": 128, "work": 1000}, "large": {"n": 256}, "held": {"work": 7}},
    run=RunSection(command=["{build:out/x}", "{params}"]),
    metrics={
        "speed": RateMetric(unit="FLOP/s", work="work"),
        "seconds": TimeMetric(),
        "accuracy": CheckMetric(field="acc"),
    },
    check=CheckSection(command=["true"]),
)


def contract(**changed: object) -> Contract:
    whole = {
        "schema_version": 1,
        "name": "c",
        "campaign": "hill_climb",
        "task": "faster",
        "project": {"repo": "p", "commit": "0" * 40},
        "cells": ["small", "large"],
        "held_out_cells": ["held"],
        "objective": {"primary": {"metric": "speed"}},
    }
    return msgspec.convert(whole | changed, Contract)


@pytest.mark.parametrize(
    ("target", "effect", "reset"),
    [
        pytest.param("cpu", 0.03, "spin", id="cpu"),
        pytest.param("cuda-gpu", 0.005, "kernel", id="gpu"),
    ],
)
def test_the_target_decides_what_the_contract_leaves_out(
    target: str, effect: float, reset: str
) -> None:
    made = rule_parameters(contract(), KIT, target)
    assert (made.min_effect, made.judging.reset) == (effect, reset)


def test_cells_weigh_the_same_unless_the_contract_says_so() -> None:
    made = rule_parameters(contract(), KIT, "cpu")
    assert made.weights == {"small": 0.5, "large": 0.5}
    objective = {"primary": {"metric": "speed"}, "weights": {"small": 3}}
    made = rule_parameters(contract(objective=objective), KIT, "cpu")
    assert made.weights == {"small": 0.75, "large": 0.25}


def test_every_cell_is_guarded_on_the_primary_unless_that_is_off() -> None:
    made = rule_parameters(contract(), KIT, "cpu")
    assert [(g.name, g.cells, g.allowed_loss) for g in made.guards] == [
        ("speed in small", ["small"], 0.03),
        ("speed in large", ["large"], 0.03),
    ]
    off = rule_parameters(contract(judging={"cell_allowed_loss": None}), KIT, "cpu")
    assert off.guards == []


def test_a_guard_covers_all_cells_together_or_each() -> None:
    guards = [
        {"metric": "accuracy"},
        {"metric": "seconds", "direction": "min", "per_cell": True, "cells": ["large"]},
    ]
    made = rule_parameters(contract(guards=guards, judging={"cell_allowed_loss": None}), KIT, "cpu")
    assert [(g.name, g.cells, g.direction, g.allowed_loss) for g in made.guards] == [
        ("guard 1: accuracy", ["small", "large"], "max", 0.01),
        ("guard 2: seconds in large", ["large"], "min", 0.01),
    ]


def test_metrics_are_those_that_the_contract_names() -> None:
    secondary = {"primary": {"metric": "speed"}, "secondary": [{"metric": "accuracy"}]}
    constraints = [{"metric": "seconds", "max": 3}]
    made = rule_parameters(contract(objective=secondary, hard_constraints=constraints), KIT, "cpu")
    assert list(made.metrics) == ["speed", "accuracy", "seconds"]
    assert made.metrics["speed"].work == {"small": "1000", "held": "7"}
    assert made.metrics["accuracy"].field == "acc"
    assert made.constraints[0].cells == ["small", "large"]


def test_only_the_contracts_cells_and_every_digit_are_kept() -> None:
    cells = KIT.cells | {"held": {"work": 10**30}, "other": {"work": 5}}
    kit = msgspec.structs.replace(KIT, cells=cells)
    made = rule_parameters(contract(), kit, "cpu")
    assert made.metrics["speed"].work == {"small": "1000", "held": "1" + "0" * 30}


def test_parameters_survive_the_ledger() -> None:
    made = rule_parameters(contract(), KIT, "cpu", order_effect=0.0006)
    read = msgspec.convert(msgspec.json.decode(msgspec.json.encode(made)), RuleParameters)
    assert read == made


@pytest.mark.parametrize(
    ("k", "alpha"),
    [
        pytest.param(1, 2.5e-5, id="first"),
        pytest.param(200, 2.5e-5, id="last of the first 200"),
        pytest.param(201, 1.25e-5, id="halved"),
        pytest.param(601, 3.125e-6, id="and again"),
    ],
)
def test_alpha_halves_with_each_200_attempts(k: int, alpha: float) -> None:
    assert alpha_k(Judging(), k) == pytest.approx(alpha)


def test_all_attempts_together_spend_at_most_the_campaigns_alpha() -> None:
    assert sum(alpha_k(Judging(), k) for k in range(1, 10_001)) <= 0.01


def impossible_stages(judging: Judging, attempts: int) -> list[str]:
    return [text for _, text in evidence_problems(judging, attempts)]


def test_defaults_can_pass_for_thousands_of_attempts() -> None:
    assert impossible_stages(Judging(), 3100) == []


@pytest.mark.parametrize(
    ("judging", "attempts", "problem"),
    [
        pytest.param(
            Judging(confirm_max_blocks=11),
            500,
            "judging.confirm_max_blocks is 11, and attempt 1000 needs at least 14 blocks to be"
            " confirmed: set it to 14, or plan at most 200 attempts",
            id="too many attempts",
        ),
        pytest.param(
            Judging(confirm_max_blocks=10, confirm_min_blocks=9, infra_retries=0),
            201,
            "judging.confirm_max_blocks is 10, and attempt 201 needs at least 11 blocks to be"
            " confirmed: set it to 11, or plan at most 200 attempts",
            id="one too many, without retries",
        ),
        pytest.param(
            Judging(confirm_max_blocks=9, confirm_min_blocks=5),
            1,
            "judging.confirm_max_blocks is 9, and attempt 2 needs at least 10 blocks to be"
            " confirmed: set it to 10",
            id="no number of attempts would do",
        ),
        pytest.param(
            Judging(max_blocks=5),
            1,
            "judging.max_blocks is 5, and a screen needs at least 6 blocks to pass: set it to 6",
            id="screen",
        ),
        pytest.param(
            Judging(guard_alpha=1e-13),
            50,
            "judging.confirm_max_blocks is 40, and a guard needs at least 44 blocks to be shown as"
            " kept: set it to 44",
            id="guard",
        ),
    ],
)
def test_a_stage_that_can_never_pass_is_named(
    judging: Judging, attempts: int, problem: str
) -> None:
    assert impossible_stages(judging, attempts) == [problem]


def test_absurd_numbers_end_in_words() -> None:
    (problem,) = impossible_stages(Judging(), 10**15)
    assert "needs at least 10000000000009 blocks" in problem
    assert impossible_stages(Judging(confirm_max_blocks=10**9), 10**9) == []
    (problem,) = impossible_stages(Judging(confirm_max_blocks=10**9), 10**15)
    assert problem.endswith(", or plan at most 99999999100 attempts")
