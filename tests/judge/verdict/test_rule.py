"""The rule `signflip-2`: each row of the table of the page on judging, 3.2."""

import math
import random
from collections.abc import Sequence

import msgspec
import pytest

from thermite.judge.verdict.rule import (
    Ruling,
    decide_confirm,
    decide_re_anchor,
    decide_screen,
    stage_d,
)
from thermite.schema.contract import Judging, Primary, RuleName
from thermite.schema.rule import GuardRule, MeasuredBlock, MetricRule, RuleParameters
from thermite.schema.verdict import JudgeStage

RATE = MetricRule(kind="rate", unit="FLOP/s", field=None, work={})
CHECKED = MetricRule(kind="check", unit="", field="accuracy", work={})


def parameters(
    *,
    held_out: Sequence[str] = (),
    guards: Sequence[GuardRule] = (),
    judging: Judging | None = None,
    **changed: object,
) -> RuleParameters:
    plain = RuleParameters(
        target="cpu",
        primary=Primary(metric="speed"),
        min_effect=0.03,
        cells=["a", "b"],
        weights={"a": 0.5, "b": 0.5},
        held_out_cells=list(held_out),
        secondary=[],
        guards=list(guards),
        constraints=[],
        metrics={"speed": RATE, "accuracy": CHECKED},
        order_effect=0.0,
        judging=judging or Judging(),
    )
    return msgspec.structs.replace(plain, **changed)


def cell_guard(cell: str) -> GuardRule:
    return GuardRule(
        name=f"speed in {cell}", metric="speed", direction="max", allowed_loss=0.03, cells=[cell]
    )


ACCURACY = GuardRule(
    name="guard 1: accuracy", metric="accuracy", direction="max", allowed_loss=0.01, cells=["a"]
)


def blocks(
    stage: JudgeStage, count: int, *, noise: float = 0.001, seed: float = 7.0, **gain: float
) -> list[MeasuredBlock]:
    """Blocks whose cells gain so much (fractions), and `accuracy` 0 unless it is given."""
    chance = random.Random(seed)
    accuracy = math.log1p(gain.pop("accuracy", 0.0))
    return [
        MeasuredBlock(
            stage=stage,
            block=number,
            ln_ratio={
                "speed": {c: math.log1p(g) + chance.gauss(0, noise) for c, g in gain.items()},
                "accuracy": dict.fromkeys(gain, accuracy),
            },
            champion_first={c: chance.random() < 0.5 for c in gain},
        )
        for number in range(count)
    ]


def first_decision(rulings: Sequence[Ruling]) -> tuple[int, str, str | None]:
    last = next(ruling for ruling in rulings if ruling.action != "continue")
    return last.n, last.action, last.result


def screen(p: RuleParameters, **gain: float) -> tuple[int, str, str | None]:
    made = blocks("screen", p.judging.max_blocks, **gain)
    return first_decision([decide_screen(made[:n], p) for n in range(1, len(made) + 1)])


def confirm(p: RuleParameters, *, k: float = 1, **gain: float) -> tuple[int, str, str | None]:
    made = blocks("confirm", p.judging.confirm_max_blocks, **gain)
    return first_decision(
        [decide_confirm([], made[:n], p, int(k)) for n in range(1, len(made) + 1)]
    )


@pytest.mark.parametrize(
    ("gain", "decided"),
    [
        pytest.param({"a": 0.2, "b": 0.2}, (6, "pass", None), id="a clear gain: 6 blocks"),
        pytest.param({"a": 0.0, "b": 0.0}, (5, "stop", "not_better"), id="nothing: 5 blocks"),
        pytest.param({"a": 0.02, "b": 0.02}, (5, "stop", "not_better"), id="too small a gain"),
        pytest.param({"a": -0.1, "b": -0.1}, (5, "stop", "regressed"), id="slower"),
        pytest.param({"a": 0.4, "b": -0.2}, (6, "pass", None), id="a trade passes unguarded"),
    ],
)
def test_screen_decides_as_soon_as_it_can(
    gain: dict[str, float], decided: tuple[int, str, str | None]
) -> None:
    assert screen(parameters(), **gain) == decided


def test_a_loss_in_one_cell_ends_screen_whatever_the_mean_says() -> None:
    p = parameters(guards=[cell_guard("a"), cell_guard("b")])
    assert screen(p, a=0.4, b=-0.2) == (5, "stop", "guard_failed")


def test_a_slower_candidate_is_regressed_before_any_guard_is_named() -> None:
    p = parameters(guards=[cell_guard("a"), cell_guard("b")])
    assert screen(p, a=-0.1, b=-0.1) == (5, "stop", "regressed")


def test_screen_ends_at_its_cap() -> None:
    # Around the threshold on both sides: neither futile nor passed.
    p = parameters(min_effect=0.03, judging=Judging(max_blocks=8))
    made = [
        block
        for n, g in enumerate((0.08, -0.02) * 4)
        for block in blocks("screen", 1, a=g, b=g, seed=n)
    ]
    decided = [decide_screen(made[:n], p) for n in range(1, 9)]
    assert first_decision(decided) == (8, "stop", "not_better")


def test_judge_time_ends_a_stage_as_its_cap_does() -> None:
    p = parameters(judging=Judging(max_judge_s=10.0))
    made = blocks("screen", 1, a=0.2, b=0.2)
    assert decide_screen(made, p, spent_s=9.9).action == "continue"
    assert decide_screen(made, p, spent_s=10.0).result == "not_better"
    assert decide_confirm([], made, p, 1, spent_s=10.0).result == "not_confirmed"


@pytest.mark.parametrize(
    ("k", "blocks_needed"),
    [
        pytest.param(1, 10, id="first"),
        pytest.param(200, 10, id="last of the first 200"),
        pytest.param(201, 11, id="201"),
        pytest.param(1001, 15, id="1001"),
    ],
)
def test_later_attempts_need_more_blocks(k: int, blocks_needed: int) -> None:
    assert confirm(parameters(), k=k, a=0.2, b=0.2) == (blocks_needed, "pass", "promoted")


@pytest.mark.parametrize(
    ("gain", "decided"),
    [
        pytest.param({"a": 0.2, "b": 0.2, "h": 0.2}, (10, "pass", "promoted"), id="everywhere"),
        pytest.param({"a": 0.2, "b": 0.2, "h": 0.0}, (10, "pass", "promoted"), id="no loss held"),
        pytest.param({"a": 0.2, "b": 0.2, "h": -0.05}, (5, "stop", "overfit"), id="held-out loss"),
        pytest.param({"a": 0.0, "b": 0.0, "h": 0.0}, (10, "stop", "not_confirmed"), id="nothing"),
        pytest.param({"a": 0.05, "b": 0.05, "h": 0.0}, (10, "stop", "not_confirmed"), id="half"),
    ],
)
def test_confirm_looks_at_the_held_out_cells(
    gain: dict[str, float], decided: tuple[int, str, str | None]
) -> None:
    assert confirm(parameters(held_out=["h"]), **gain) == decided


def test_without_held_out_cells_nothing_is_overfit() -> None:
    assert confirm(parameters(), a=0.2, b=0.2) == (10, "pass", "promoted")


def test_a_guard_that_is_not_shown_to_hold_blocks_the_promotion() -> None:
    # A loss of exactly what is allowed gives evidence for neither side.
    p = parameters(guards=[ACCURACY], judging=Judging(confirm_max_blocks=12))
    assert confirm(p, a=0.2, b=0.2, accuracy=-0.01)[1:] == ("stop", "not_confirmed")
    assert confirm(p, a=0.2, b=0.2, accuracy=0.0)[1:] == ("pass", "promoted")
    assert confirm(p, a=0.2, b=0.2, accuracy=-0.05)[1:] == ("stop", "guard_failed")


def test_each_direction_counts_as_the_contract_says() -> None:
    shorter = parameters(primary=Primary(metric="speed", direction="min"))
    assert screen(shorter, a=-0.2, b=-0.2) == (6, "pass", None)
    assert screen(shorter, a=0.2, b=0.2) == (5, "stop", "regressed")


def test_cells_weigh_as_the_contract_says() -> None:
    (block,) = blocks("confirm", 1, noise=0.0, a=0.1, b=0.0, h=0.3)
    p = parameters(weights={"a": 0.75, "b": 0.25}, held_out=["h"])
    assert stage_d("screen", block, p) == pytest.approx(0.75 * math.log(1.1))
    expected = 0.5 * 0.75 * math.log(1.1) + 0.5 * math.log(1.3)
    assert stage_d("confirm", block, p) == pytest.approx(expected)


def test_a_gain_that_is_too_good_waits_for_a_person() -> None:
    assert confirm(parameters(), a=9.5, b=9.5) == (10, "hold", "suspect_gain")
    assert confirm(parameters(), a=8.5, b=8.5) == (10, "pass", "promoted")


SEVEN = list("abcdefg")


@pytest.mark.parametrize(
    ("fast", "rule", "decided"),
    [
        pytest.param(12.0, "signflip-2", ("hold", "suspect_gain"), id="R9-one of seven cells"),
        pytest.param(8.0, "signflip-2", ("pass", "promoted"), id="R9-below the bound"),
        pytest.param(12.0, "signflip-1", ("pass", "promoted"), id="R9-the first version"),
    ],
)
def test_one_cell_beyond_belief_waits_for_a_person(
    fast: float, rule: RuleName, decided: tuple[str, str]
) -> None:
    p = parameters(cells=SEVEN, weights=dict.fromkeys(SEVEN, 1 / 7), judging=Judging(rule=rule))
    gains = dict.fromkeys(SEVEN, 0.0) | {"d": fast - 1.0}
    assert confirm(p, **gains) == (10, *decided)
    whole = fast ** (1 / 7)
    assert 1.3 < whole < 1.5  # the whole looks honest


def test_one_held_out_cell_beyond_belief_waits_for_a_person() -> None:
    p = parameters(held_out=["h", "i", "j"])
    assert confirm(p, a=0.1, b=0.1, h=0.0, i=11.0, j=0.0) == (10, "hold", "suspect_gain")


def test_a_gain_of_one_order_only_waits_for_a_person() -> None:
    made = [
        MeasuredBlock(
            stage="confirm",
            block=n,
            ln_ratio={"speed": dict.fromkeys("ab", 0.2 if n % 2 else 0.1)},
            champion_first=dict.fromkeys("ab", bool(n % 2)),
        )
        for n in range(10)
    ]
    p = parameters(metrics={"speed": RATE})
    assert decide_confirm([], made, p, 1).result == "carry_over"
    known = parameters(metrics={"speed": RATE}, order_effect=0.06)
    assert decide_confirm([], made, known, 1).result == "promoted"


def test_bounds_stand_in_a_stages_last_decision_only() -> None:
    made = blocks("screen", 6, a=0.2, b=0.2)
    p = parameters()
    going, last = decide_screen(made[:5], p), decide_screen(made, p)
    assert (going.lcb, going.ucb) == (None, None)
    assert last.action == "pass"
    made = blocks("confirm", 10, a=0.2, b=0.2)
    ruling = decide_confirm([], made, p, 1)
    assert ruling.lcb == pytest.approx(math.log(1.2), abs=0.01)
    assert ruling.ucb == pytest.approx(math.log(1.2), abs=0.01)


def test_a_re_anchor_ends_at_twenty_blocks_and_judges_nothing() -> None:
    p = parameters()
    made = blocks("re_anchor", 20, a=-0.5, b=-0.5)
    assert decide_re_anchor(made[:19], p).action == "continue"
    ruling = decide_re_anchor(made, p)
    assert (ruling.action, ruling.result) == ("stop", None)
    assert ruling.t == pytest.approx(math.log(0.5), abs=0.01)


def test_deciding_twice_is_the_same_decision() -> None:
    p = parameters(held_out=["h"], guards=[cell_guard("a"), ACCURACY])
    made = blocks("confirm", 12, a=0.05, b=0.04, h=0.05, noise=0.02)
    assert decide_confirm([], made, p, 3) == decide_confirm([], made, p, 3)


def judged(p: RuleParameters, gain: float, chance: random.Random) -> bool:
    """Judge one attempt on heavy-tailed noise: Student-t with 3 degrees, 0.6 %, and spikes."""

    def block(stage: JudgeStage, number: int) -> MeasuredBlock:
        first = chance.random() < 0.5
        d = math.log1p(gain) + (_noise(chance) - _noise(chance))
        return MeasuredBlock(
            stage=stage,
            block=number,
            ln_ratio={"speed": {"a": d}},
            champion_first={"a": first},
        )

    seen: list[MeasuredBlock] = []
    ruling = None
    while ruling is None or ruling.action == "continue":
        seen.append(block("screen", len(seen)))
        ruling = decide_screen(seen, p)
    fresh: list[MeasuredBlock] = []
    while ruling.action in {"continue", "pass"} and ruling.result is None:
        fresh.append(block("confirm", len(fresh)))
        ruling = decide_confirm(seen, fresh, p, 1)
    return ruling.result == "promoted"


def _noise(chance: random.Random) -> float:
    spread = math.sqrt(sum(chance.gauss(0, 1) ** 2 for _ in range(3)) / 3)
    spike = chance.expovariate(4.0) if chance.random() < 0.02 else 0.0
    return 0.0045 * chance.gauss(0, 1) / spread + spike


def test_attempts_that_change_nothing_are_not_promoted_and_a_gain_of_2_is() -> None:
    p = parameters(cells=["a"], weights={"a": 1.0}, metrics={"speed": RATE})
    chance = random.Random(20)
    assert sum(judged(p, 0.0, chance) for _ in range(200)) == 0
    assert sum(judged(p, 1.0, chance) for _ in range(20)) == 20
    assert sum(judged(p, 0.05, chance) for _ in range(40)) >= 37  # design: 99.9 %


def series(stage: JudgeStage, *d: float) -> list[MeasuredBlock]:
    """Blocks of one cell with exactly these log-ratios, the champion first in every other."""
    return [
        MeasuredBlock(
            stage=stage,
            block=number,
            ln_ratio={"speed": {"a": value}},
            champion_first={"a": bool(number % 2)},
        )
        for number, value in enumerate(d)
    ]


ONE_CELL = parameters(cells=["a"], weights={"a": 1.0}, metrics={"speed": RATE})
MU = math.log(1.03)


def test_a_gain_just_below_what_is_asked_is_futile_by_its_spread() -> None:
    # ln E of (mu - D) is far below ln 20 here; T + se < mu decides.
    ruling = decide_screen(series("screen", *[MU - 1e-5] * 5), ONE_CELL)
    assert (ruling.ln_e_futility or 0.0) < math.log(20)
    assert (ruling.action, ruling.result) == ("stop", "not_better")


def test_blocks_that_all_fall_short_are_futile_by_their_evidence() -> None:
    # Two far outliers make se so large that T + se reaches mu; the evidence decides.
    short = [0.001, 0.001, 0.001, 0.001, 2.0, 2.0]
    ruling = decide_screen(series("screen", *[MU - m for m in short]), ONE_CELL)
    assert ruling.t + (ruling.se or 0.0) > MU
    assert (ruling.action, ruling.result) == ("stop", "not_better")


def test_evidence_alone_passes_nothing_below_the_smallest_gain() -> None:
    around = [0.015, 0.02, 0.026, 0.028, 0.035, 0.05]
    ruling = decide_screen(series("screen", *around), ONE_CELL)
    assert ruling.ln_e > math.log(50)
    assert ruling.t < MU
    assert ruling.action == "continue"
    ruling = decide_confirm([], series("confirm", *around, *around), ONE_CELL, 1)
    assert ruling.ln_e > math.log(800)
    assert ruling.t < MU
    assert ruling.action == "continue"


def test_a_mean_alone_passes_nothing_without_evidence() -> None:
    mixed = [0.5, -0.4, 0.5, -0.4, 0.5, 0.5]
    ruling = decide_screen(series("screen", *mixed), ONE_CELL)
    assert ruling.t > MU
    assert ruling.action == "continue"


def test_a_held_out_loss_at_its_limit_is_neither_shown_nor_excluded() -> None:
    p = parameters(held_out=["h"], judging=Judging(confirm_max_blocks=15))
    assert confirm(p, a=0.2, b=0.2, h=-0.005, noise=0.0) == (15, "stop", "not_confirmed")


def test_orders_that_differ_by_chance_hold_nothing() -> None:
    apart = [(0.2 if n % 2 else 0.1) + n / 1000 for n in range(10)]
    blocks_ = series("confirm", *apart)
    # Five against five can't be rarer than p = 0.009; with screen's blocks it is.
    assert decide_confirm([], blocks_, ONE_CELL, 1).result == "promoted"
    screened = series("screen", *apart[:6])
    assert decide_confirm(screened, blocks_, ONE_CELL, 1).result == "carry_over"
