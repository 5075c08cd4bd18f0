"""What an order will cost and what it can show, said before it is sent.

Blocks, not seconds: control has never timed the kit on that rig. Source: judging, 3.3
("Cost") and 3.7; the reference page "Contract", Completing a contract.
"""

import math
from dataclasses import dataclass

from thermite.control.rigs import KnownRig
from thermite.schema.contract import Contract
from thermite.schema.kit import Kit


@dataclass(frozen=True)
class Forecast:
    """The cost of a hill climb in runs, each with its check.

    null_runs: of a candidate without gain, at its fewest; promotion_runs: fewest and most of
    one that is promoted; attempts: planned; campaign_runs: all attempts without gain;
    longest_s: the most that these take, every run and check at its time limit.
    """

    null_runs: int
    promotion_runs: tuple[int, int]
    attempts: int
    campaign_runs: int
    longest_s: int


def forecast(contract: Contract, kit: Kit) -> Forecast | None:
    """Return the forecast of a hill climb; None for the other kinds of campaign."""
    if contract.campaign != "hill_climb":
        return None
    rule = contract.judging
    visible = 2 * len(contract.cells)  # both arms of a block
    confirmed = 2 * (len(contract.cells) + len(contract.held_out_cells))
    null_runs = rule.min_blocks * visible
    attempts = contract.budget.attempts
    return Forecast(
        null_runs=null_runs,
        promotion_runs=(
            rule.min_blocks * visible + rule.confirm_min_blocks * confirmed,
            rule.max_blocks * visible + rule.confirm_max_blocks * confirmed,
        ),
        attempts=attempts,
        campaign_runs=attempts * null_runs,
        longest_s=attempts * null_runs * (kit.run.timeout_s + kit.check.timeout_s),
    )


def expectations(rig: KnownRig, contract: Contract, cost: Forecast | None) -> list[str]:
    """Return what to expect, one sentence a line, for whoever signs."""
    lines = [_sight(rig)]
    if cost is not None:
        least, most = cost.promotion_runs
        lines.append(
            f"a candidate without gain costs about {cost.null_runs} runs with their checks,"
            f" a promotion {least} to {most}"
        )
        lines.append(
            f"{cost.attempts} attempts without gain cost {cost.campaign_runs} runs: at most"
            f" {_span(cost.longest_s)} of judge time, every run at its limit"
        )
    if contract.campaign != "research" and not contract.held_out_cells:
        lines.append(
            "no held-out cells: gains are only shown on cells that the candidates can be tuned to"
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
    if rig.sees is None or rig.grade is None:
        return "this rig has no selftest yet, so it is not known how small a gain it sees"
    return f"this rig sees ≥ {rig.sees * 100:.1f} % (grade {rig.grade})"


def _span(seconds: int) -> str:
    for name, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{math.ceil(seconds / size)} {name}"  # an upper bound is never rounded down
    return f"{seconds} s"
