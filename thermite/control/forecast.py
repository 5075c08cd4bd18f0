"""What an order will cost and what it can show, said before it is sent.

In seconds where the rig's last selftest timed this kit, else in runs: control has never run
it. Source: judging, 3.3 ("Cost") and 3.7; the reference page "Contract", Completing a contract.
"""

import math
from dataclasses import dataclass
from typing import Final

from thermite.control.rigs import KnownRig
from thermite.schema.contract import CPU_MIN_EFFECT, Contract
from thermite.schema.kit import Kit

NULL_BLOCKS: Final = 6.5
"""Mean blocks of a candidate without gain on quiet noise at a small min_effect (judging, 2.4)."""
PROMOTION_BLOCKS: Final = (7, 11)
"""Typical blocks of screen and confirm on quiet noise: 16 to 19 in all (judging, 2.5)."""
ONE_IN: Final = 10
"""A campaign is reckoned with one promotion in so many attempts (judging, 4)."""


@dataclass(frozen=True)
class Forecast:
    """The cost of a hill climb in runs, each with its check.

    null_runs: of a typical candidate without gain; promotion_runs: of a typical promotion;
    most_runs: of any attempt, at the caps; attempts: planned; campaign_runs: those with one
    promotion in ten; longest_s: what all attempts without gain take at most, every run and
    check at its time limit; run_s: judge time of one run on this rig, seconds, None: unknown.
    """

    null_runs: int
    promotion_runs: int
    most_runs: int
    attempts: int
    campaign_runs: int
    longest_s: int
    run_s: float | None


def forecast(contract: Contract, kit: Kit, rig: KnownRig | None = None) -> Forecast | None:
    """Return the forecast of a hill climb; None for the other kinds of campaign."""
    if contract.campaign != "hill_climb":
        return None
    rule, attempts = contract.judging, contract.budget.attempts
    visible = 2 * len(contract.cells)  # both arms of a block
    confirmed = 2 * (len(contract.cells) + len(contract.held_out_cells))
    asked = contract.objective.min_effect if contract.objective else None
    large = asked is None or asked >= CPU_MIN_EFFECT
    blocks = float(rule.min_blocks) if large else max(float(rule.min_blocks), NULL_BLOCKS)
    null_runs = math.ceil(blocks * visible)
    screened, checked = PROMOTION_BLOCKS
    promotion_runs = (
        max(rule.min_blocks, screened) * visible + max(rule.confirm_min_blocks, checked) * confirmed
    )
    promotions = attempts // ONE_IN
    return Forecast(
        null_runs=null_runs,
        promotion_runs=promotion_runs,
        most_runs=rule.max_blocks * visible + rule.confirm_max_blocks * confirmed,
        attempts=attempts,
        campaign_runs=promotions * promotion_runs + (attempts - promotions) * null_runs,
        longest_s=attempts * null_runs * (kit.run.timeout_s + kit.check.timeout_s),
        run_s=None if rig is None else _run_s(contract, rig),
    )


def expectations(
    rig: KnownRig, contract: Contract, cost: Forecast | None, *, is_heard: bool = True
) -> list[str]:
    """Return what to expect, one sentence a line, for whoever signs.

    Args:
        is_heard: whether the rig was heard now; else it may have changed since it was.
    """
    parts = [_sight(rig) if is_heard else f"as of {rig.read_at}: {_sight(rig)}"]
    if cost is not None:
        null, promotion = (_cost(n, cost.run_s) for n in (cost.null_runs, cost.promotion_runs))
        whole = _cost(cost.campaign_runs, cost.run_s)
        parts += [
            f"a promotion costs about {promotion}, a null about {null}",
            f"{cost.attempts} attempts about {whole}{' of judge time' if cost.run_s else ''}",
            f"chance that any promotion is false ≤ {100 * contract.judging.alpha_campaign:g} %",
        ]
    if contract.campaign != "research" and not contract.held_out_cells:
        parts.append(
            "no held-out cells: gains are only shown on cells that the candidates can be tuned to"
        )
    lines = ["; ".join(parts)]
    if cost is not None:
        lines.append(
            f"an attempt takes at most {cost.most_runs} runs; {cost.attempts} attempts without gain"
            f" take at most {_span(cost.longest_s)}, every run and check at its limit"
        )
    if contract.isolation in {"users", "users+namespaces"} and rig.isolation != "unknown":
        lines += _too_little(contract.isolation, rig.isolation)
    if contract.isolation == "any":
        lines.append(
            f"isolation any: the rig's level, {rig.isolation}, is accepted, and every report says"
            " so"
        )
    return lines


def _too_little(wanted: str, level: str) -> list[str]:
    """Return that the rig will refuse, when its level is plainly below what is asked for."""
    if set(wanted.split("+")) <= set(level.split("+")):
        return []
    return [f"this rig isolates with {level}, and the contract asks for {wanted}: it will refuse"]


def _sight(rig: KnownRig) -> str:
    if rig.grade is None:
        return "this rig has no selftest yet, so it is not known how small a gain it sees"
    if rig.sees is None:
        return (
            f"this rig, graded {rig.grade}, has not said how small a gain it sees (a full thermite"
            " rig selftest does, unless noise hides every gain that it tries)"
        )
    return f"this rig, graded {rig.grade}, sees ≥ {rig.sees * 100:.1f} %"


def _run_s(contract: Contract, rig: KnownRig) -> float | None:
    kit = contract.project.kit
    return rig.run_s if kit is not None and rig.timed_kit == kit.repo else None


def _cost(runs: int, run_s: float | None) -> str:
    return f"{runs} runs with their checks" if run_s is None else _span(math.ceil(runs * run_s))


def _span(seconds: int) -> str:
    for name, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{math.ceil(seconds / size)} {name}"  # an upper bound is never rounded down
    return f"{seconds} s"
