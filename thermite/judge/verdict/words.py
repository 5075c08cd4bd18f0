"""What a verdict says in words: reasons of a decision, marks and notes.

The texts hold numbers and the contract's own names only, never a candidate's words.
Source: the design page on judging, 2.3, 3.2, 3.5 and 3.9.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from thermite.judge.verdict import exact
from thermite.judge.verdict.evidence import trimmed_mean
from thermite.judge.verdict.rule import HELD_OUT, guard_d, stage_d, suspect_cells
from thermite.schema.contract import Contract
from thermite.schema.contract_rules import confirm_evidence
from thermite.schema.event import Decision, GoalChecked, Interval
from thermite.schema.rule import GuardRule, MeasuredBlock, RuleParameters
from thermite.schema.stage import IsolationRecord

PLACEMENT_LUCK: Final = "within code-placement luck"
"""Mark of a promotion that moving code alone could explain (judging, 2.3)."""
PLACEMENT_EFFECT: Final = 0.03
"""What code placement alone was seen to gain on target cpu (judging, 2.3)."""
NO_HELD_OUT: Final = "no held-out cells: this gain is only shown on what the agents saw"
"""Note of a promotion without held-out cells (judging, 3.2)."""
_PASS: Final = {"visible": "", "hidden": " on held-out cells"}


def percent(fraction: float) -> str:
    """Return a fraction in percent, e.g. `3 %` or `-0.25 %`."""
    return f"{100.0 * fraction:.2f}".rstrip("0").rstrip(".") + " %"


def claim(decision: Decision) -> tuple[float, Interval]:
    """Return gain and interval of a decision, as fractions."""
    return math.expm1(decision.T), (_fraction(decision.lcb), _fraction(decision.ucb))


def decision_reason(
    result: str,
    decision: Decision,
    p: RuleParameters,
    blocks: Sequence[MeasuredBlock] = (),
    k: int = 1,
) -> str:
    """Return why a stage ended as it did, with what was measured.

    Of held-out cells only that they lost is told, never how much.

    Args:
        result: the verdict that the decision leads to, or the reason of a hold.
        blocks: those that the decision rests on, for the figures of single guards.
        k: the attempt's index, which sets the evidence that confirm asks for.
    """
    whole = percent(math.expm1(decision.T))
    measured = f"measured in {decision.n} blocks"
    if decision.rule == exact.RULE:
        measured = "by values of the check that never varied"
    failed = _failed_conditions(result, decision, p, blocks, k)
    if failed:
        return f"{'; '.join(failed)}, {measured} ({whole} over all cells)"
    if result in {"not_better", "not_confirmed"}:
        weak = result == "not_confirmed" and _reaches(decision, p)
        why = ", too little evidence" if weak else ""
        return f"{_found(result, p)}: {whole}{_spread(decision, p, blocks)} {measured}{why}"
    return f"{_found(result, p)}: {whole} {measured}"


def _found(result: str, p: RuleParameters) -> str:
    match result:
        case "promoted" | "regressed":
            return "better" if result == "promoted" else "worse"
        case "not_confirmed":
            return f"a gain of {percent(p.min_effect)} was not confirmed"
        case "carry_over" | "suspect_gain":
            return f"held for {result}"
        case _:
            return f"no gain of {percent(p.min_effect)} was shown"


def _failed_conditions(
    result: str,
    decision: Decision,
    p: RuleParameters,
    blocks: Sequence[MeasuredBlock],
    k: int,
) -> list[str]:
    """Return the guards and cells that a stage ended for; none for its gain."""
    held_out = percent(p.judging.held_out_allowed_loss)
    if result == "overfit":
        return [f"the held-out cells lost more than {held_out}"]
    if result == "suspect_gain":
        return _suspects(decision, p, blocks)
    if result == "guard_failed":
        lost = [guard for guard in p.guards if _is_lost(guard, decision, p)]
        return [f"{g.name} lost more than {percent(g.allowed_loss)}{_own(g, blocks)}" for g in lost]
    shows = _reaches(decision, p) and decision.lnE >= confirm_evidence(p.judging, k)
    if result != "not_confirmed" or not shows or decision.rule == exact.RULE:
        return []
    shown = -math.log(p.judging.guard_alpha)
    said = "was not shown to lose less than"
    open_ = [
        f"{g.name} {said} {percent(g.allowed_loss)}{_own(g, blocks)}"
        for g in p.guards
        if decision.guards.get(g.name, math.inf) < shown
    ]
    if decision.guards.get(HELD_OUT, math.inf) < shown:
        open_.append(f"the mean of the held-out cells {said} {held_out}")
    return [f"{_found(result, p)}: {open_[0]}", *open_[1:]] if open_ else []


def _suspects(decision: Decision, p: RuleParameters, blocks: Sequence[MeasuredBlock]) -> list[str]:
    """Return the cells that alone are beyond belief; none when the whole is."""
    whole_is = math.log(p.judging.suspect_gain) < decision.T
    if whole_is or not blocks:
        return []
    beyond = f"than {p.judging.suspect_gain:g} times (judging.suspect_gain)"
    found = suspect_cells(blocks, p)
    named = [
        f"cell {cell} by itself gained more {beyond}: {math.exp(d):.3g} times as good"
        for cell, d in found.items()
        if cell in p.cells
    ]
    if found.keys() & set(p.held_out_cells):
        named.append(f"a held-out cell by itself gained more {beyond}")
    return [f"{_found('suspect_gain', p)}: {named[0]}", *named[1:]] if named else []


def _is_lost(guard: GuardRule, decision: Decision, p: RuleParameters) -> bool:
    if decision.rule == exact.RULE:
        return exact.is_lost(decision.guards[guard.name], guard.allowed_loss)
    shown = -math.log(p.judging.guard_alpha)
    return decision.guards.get(f"{guard.name}, lost", -math.inf) >= shown


def _reaches(decision: Decision, p: RuleParameters) -> bool:
    least = math.log1p(p.min_effect)
    return least <= decision.T


def _own(guard: GuardRule, blocks: Sequence[MeasuredBlock]) -> str:
    """Return a guard's own change, not the whole gain."""
    if not blocks:
        return ""
    return f": {percent(math.expm1(trimmed_mean([guard_d(block, guard) for block in blocks])))}"


def _spread(decision: Decision, p: RuleParameters, blocks: Sequence[MeasuredBlock]) -> str:
    """Return the interval; of blocks too few for one, the least and the most of them."""
    if decision.rule == exact.RULE:
        return ""
    if (decision.lcb, decision.ucb) != (None, None):
        low, high = _fraction(decision.lcb), _fraction(decision.ucb)
        return f" [{_or_dash(low)}, {_or_dash(high)}]"
    if not blocks:
        return ""
    ds = [stage_d(decision.stage, block, p) for block in blocks]
    return f" ({percent(math.expm1(min(ds)))} to {percent(math.expm1(max(ds)))})"


def marks(p: RuleParameters, interval: Interval) -> list[str]:
    """Return the marks of a promotion."""
    low = interval[0]
    doubtful = p.target == "cpu" and (low is None or low < PLACEMENT_EFFECT)
    return [PLACEMENT_LUCK] if doubtful else []


def startup_notes(shares: Mapping[str, float], p: RuleParameters, gain: float | None) -> list[str]:
    """Return notes on cells where starting up is a large part of a run."""
    large = {c: s for c, s in shares.items() if s > p.judging.startup_share_warn}
    notes = [
        f"startup is {percent(share)} of a run in cell {cell}" for cell, share in large.items()
    ]
    mean = math.fsum(shares.values()) / len(shares) if shares else 0.0
    if large and gain is not None and mean < 1.0:
        notes.append(f"gain_net: without startup the gain is {percent(gain / (1.0 - mean))}")
    return notes


def isolation_notes(isolation: IsolationRecord) -> list[str]:
    """Return what must be said aloud of runs as the judge's own user (isolation, 4.2)."""
    if isolation.level != "none":
        return []
    said = "the candidate ran as the judge's own user"
    if any(feature.startswith("landlock") for feature in isolation.features):
        kept = "Landlock kept it from kit, ledger and keys"
        return [f"isolation: none + landlock – {said}, and {kept}"]
    return [f"isolation: none – {said} and could read the kit"]


def secondary_notes(
    claims: Mapping[str, tuple[float, float | None, float | None]],
) -> list[str]:
    """Return a note for each secondary objective: its gain and interval; positive is better."""
    return [
        f"secondary {metric}: {percent(math.expm1(t))}"
        f" [{_or_dash(_fraction(low))}, {_or_dash(_fraction(high))}]"
        for metric, (t, low, high) in claims.items()
    ]


def _or_dash(fraction: float | None) -> str:
    return "–" if fraction is None else percent(fraction)


def unmet_goals(contract: Contract, checked: Iterable[GoalChecked]) -> list[str]:
    """Return one reason for each goal that is unmet in a pass, in the contract's order."""
    found: dict[tuple[str, str], list[str]] = {
        (one.goal, one.passed): one.reasons for one in checked if not one.met
    }
    return [
        f"goal {goal.id}{_PASS[which]}: {'; '.join(found[goal.id, which])}"
        for goal in contract.goals
        for which in _PASS
        if (goal.id, which) in found
    ]


def _fraction(log_ratio: float | None) -> float | None:
    return None if log_ratio is None else math.expm1(log_ratio)
