"""The rules `signflip-2` and `exact-1`: what is decided after each counted block.

Screen asks whether a candidate deserves fresh blocks, confirm whether it is promoted on
them, the held-out cells included. At each block futility is looked at first, then what
counts against the candidate, then passing, then the cap. Only confirm's blocks make the
claim. Values of the check that never vary decide by themselves (`exact`). `signflip-1` differs
in holds only: it lets one cell be as much faster as it likes while the whole is not.
Source: the design page on judging, 3.2 and 3.4; known faults, R9.
"""

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from thermite.judge.verdict import evidence, exact
from thermite.judge.verdict.order_effect import SIGNIFICANT, Pair, order_effect
from thermite.schema.contract import Direction
from thermite.schema.contract_rules import confirm_evidence
from thermite.schema.rule import GuardRule, MeasuredBlock, RuleParameters
from thermite.schema.strict import Strict
from thermite.schema.verdict import Action, JudgeStage

LN_REGRESSED: Final = math.log(20.0)
"""ln E of -D from which a candidate that is not better counts as slower (judging, 3.2)."""
RE_ANCHOR_BLOCKS: Final = 20
"""Blocks of a re-anchor (judging, 3.2)."""
HELD_OUT: Final = "held-out cells"
"""The name of the held-out cells' series among the guards of a decision."""


class Ruling(Strict):
    """What was decided after n counted blocks of a stage, and what it rests on.

    t, se, lcb and ucb are log-ratios; guards: ln E of each, under `exact-1` its own
    log-ratio; result: the verdict that a stop leads to, or the reason of a hold; None while
    it goes on, and when screen passes.
    """

    n: int
    ln_e: float
    ln_e_futility: float | None
    t: float
    se: float | None
    lcb: float | None
    ucb: float | None
    guards: dict[str, float]
    action: Action
    result: str | None
    rule: str


class _Kept:
    """A guarded series: log-ratios, and the log of the loss that is allowed, 0 or more."""

    def __init__(self, name: str, values: Sequence[float], allowed_loss: float) -> None:
        self.name, self._values = name, values
        self._nu = -math.log1p(-allowed_loss)

    @property
    def kept(self) -> float:
        """Ln E that it stays within its allowed loss."""
        return evidence.ln_evidence_above(self._values, -self._nu)

    @property
    def lost(self) -> float:
        """Ln E that it does not."""
        return evidence.ln_evidence_below(self._values, -self._nu)

    def is_lost(self, level: float) -> bool:
        """Return whether a loss beyond what is allowed is shown at a log-evidence."""
        return evidence.is_shown([-self._nu - value for value in self._values], level)


class _Series:
    """D of a stage so far, with the figures that its decision needs."""

    def __init__(
        self,
        stage: JudgeStage,
        blocks: Sequence[MeasuredBlock],
        p: RuleParameters,
        *,
        full: bool = True,
    ) -> None:
        self.full = full
        self.d = [stage_d(stage, block, p) for block in blocks]
        self.n = len(self.d)
        self.mu = math.log1p(p.min_effect)
        self.rule = p.judging.rule
        self.ln_e = evidence.ln_evidence(self.d)
        self.t = evidence.trimmed_mean(self.d)
        self.se = evidence.standard_error(self.d)

    def is_futile(self, beta: float) -> bool:
        if self.se is not None and self.t + self.se < self.mu:
            return True
        return evidence.is_shown([self.mu - d for d in self.d], -math.log(beta))

    def not_better(self) -> str:
        is_worse = evidence.is_shown([-d for d in self.d], LN_REGRESSED)
        return "regressed" if is_worse else "not_better"

    def ruling(self, action: Action, result: str | None, guards: Sequence[_Kept] = ()) -> Ruling:
        # Bounds cost 2 ms at 40 blocks, so only a stage's last decision has them (3.2).
        last = action != "continue" and self.full
        return Ruling(
            n=self.n,
            ln_e=self.ln_e,
            ln_e_futility=evidence.ln_evidence_below(self.d, self.mu) if self.full else None,
            t=self.t,
            se=self.se,
            lcb=evidence.lower_bound(self.d) if last else None,
            ucb=evidence.upper_bound(self.d) if last else None,
            guards=_recorded(guards) if self.full else {},
            action=action,
            result=result,
            rule=self.rule,
        )

    def exactly(self, action: Action, result: str | None, guards: dict[str, float]) -> Ruling:
        """Return a ruling by values: its bounds are the value itself."""
        found = self.ruling("continue", result)
        return msgspec.structs.replace(
            found, lcb=self.t, ucb=self.t, guards=guards, action=action, rule=exact.RULE
        )


def signed(block: MeasuredBlock, metric: str, direction: Direction, cell: str) -> float:
    """Return the log-ratio of a metric in a cell, positive when the candidate is better."""
    ratio = block.ln_ratio[metric][cell]
    return ratio if direction == "max" else -ratio


def cell_d(block: MeasuredBlock, cell: str, p: RuleParameters) -> float:
    """Return d of the primary metric in one cell of a block."""
    return signed(block, p.primary.metric, p.primary.direction, cell)


def stage_d(stage: JudgeStage, block: MeasuredBlock, p: RuleParameters) -> float:
    """Return D of a block: cells by weight, with the held-out cells where a stage has them."""
    visible = math.fsum(p.weights[cell] * cell_d(block, cell, p) for cell in p.cells)
    if stage not in {"confirm", "re_anchor"} or not p.held_out_cells:
        return visible
    share = p.judging.held_out_weight
    return (1.0 - share) * visible + share * held_out_d(block, p)


def held_out_d(block: MeasuredBlock, p: RuleParameters) -> float:
    """Return the plain mean of d over the held-out cells of a block."""
    return math.fsum(cell_d(block, cell, p) for cell in p.held_out_cells) / len(p.held_out_cells)


def stage_cells(stage: JudgeStage, p: RuleParameters) -> list[str]:
    """Return the cells that a block of the stage measures."""
    held_out = p.held_out_cells if stage in {"confirm", "re_anchor"} else []
    return [*p.cells, *held_out]


def secondary_claims(
    blocks: Sequence[MeasuredBlock], p: RuleParameters
) -> dict[str, tuple[float, float | None, float | None]]:
    """Return T, lcb and ucb of each secondary objective over confirm's blocks, log-ratios.

    Weighted over the cells as the primary is. They are reported and promote nothing.
    """
    found = {}
    for one in p.secondary if blocks else []:
        other = msgspec.structs.replace(p, primary=one)
        series = [stage_d("confirm", block, other) for block in blocks]
        t, low, high = (
            evidence.trimmed_mean(series),
            evidence.lower_bound(series),
            evidence.upper_bound(series),
        )
        found[one.metric] = (t, low, high)
    return found


def decide_screen(
    blocks: Sequence[MeasuredBlock],
    p: RuleParameters,
    *,
    spent_s: float = 0.0,
    full: bool = True,
) -> Ruling:
    """Decide after the newest counted block of screen.

    Args:
        blocks: the counted blocks of screen in order, at least one.
        spent_s: judge time of the attempt so far, seconds, from its records.
        full: whether figures that decide nothing are there too: bounds, and evidence that is
            far from its level; the decision is the same.
    """
    series = _Series("screen", blocks, p, full=full)
    if exact.decides(blocks, p):
        return _exact_screen(series, blocks[-1], p)
    guards = _guards(blocks, p)
    if series.n < exact.BLOCKS and exact.is_same(blocks, p) and not _is_spent(spent_s, p):
        return series.ruling("continue", None, guards)
    return _signflip_screen(series, guards, p, spent_s)


def _signflip_screen(
    series: _Series, guards: Sequence[_Kept], p: RuleParameters, spent_s: float
) -> Ruling:
    judging = p.judging
    enough = series.n >= judging.min_blocks
    if enough and series.is_futile(judging.futility_beta):
        return series.ruling("stop", series.not_better(), guards)
    if _is_lost(guards, p):
        return series.ruling("stop", "guard_failed", guards)
    if enough and series.ln_e >= -math.log(judging.screen_alpha) and series.t >= series.mu:
        return series.ruling("pass", None, guards)
    if series.n >= judging.max_blocks or _is_spent(spent_s, p):
        return series.ruling("stop", series.not_better(), guards)
    return series.ruling("continue", None, guards)


def decide_confirm(
    screen: Sequence[MeasuredBlock],
    blocks: Sequence[MeasuredBlock],
    p: RuleParameters,
    k: int,
    *,
    spent_s: float = 0.0,
    full: bool = True,
) -> Ruling:
    """Decide after the newest counted block of confirm.

    Args:
        screen: the counted blocks of screen; only the check of the order looks at them.
        blocks: the counted blocks of confirm in order, at least one.
        k: the attempt's index, which sets the evidence that is asked for.
        spent_s: judge time of the attempt so far, seconds, from its records.
        full: whether figures that decide nothing are there too: bounds, and evidence that is
            far from its level; the decision is the same.
    """
    series = _Series("confirm", blocks, p, full=full)
    if exact.decides(screen, p):
        return _exact_confirm(series, screen, blocks[-1], p)
    return _signflip_confirm(series, [*screen, *blocks], blocks, p, k, spent_s=spent_s)


def _signflip_confirm(
    series: _Series,
    both: Sequence[MeasuredBlock],
    blocks: Sequence[MeasuredBlock],
    p: RuleParameters,
    k: int,
    *,
    spent_s: float,
) -> Ruling:
    judging = p.judging
    guards, held_out = _guards(blocks, p), _held_out(blocks, p)
    all_guards = [*guards, *held_out]
    enough = series.n >= judging.confirm_min_blocks
    if enough and series.is_futile(judging.confirm_beta):
        return series.ruling("stop", "not_confirmed", all_guards)
    if _is_lost(held_out, p):
        return series.ruling("stop", "overfit", all_guards)
    if _is_lost(guards, p):
        return series.ruling("stop", "guard_failed", all_guards)
    shown = series.ln_e >= confirm_evidence(judging, k) and series.t >= series.mu
    if enough and shown and _all_kept(all_guards, p):
        hold = _hold(series.t, blocks, both, p)
        return series.ruling("hold" if hold else "pass", hold or "promoted", all_guards)
    if series.n >= judging.confirm_max_blocks or _is_spent(spent_s, p):
        return series.ruling("stop", "not_confirmed", all_guards)
    return series.ruling("continue", None, all_guards)


def decide_re_anchor(blocks: Sequence[MeasuredBlock], p: RuleParameters) -> Ruling:
    """Decide after the newest counted block of a re-anchor: it only ever ends at its number."""
    series = _Series("re_anchor", blocks, p)
    return series.ruling("stop" if series.n >= RE_ANCHOR_BLOCKS else "continue", None)


def _exact_screen(series: _Series, block: MeasuredBlock, p: RuleParameters) -> Ruling:
    guards = {guard.name: guard_d(block, guard) for guard in p.guards}
    if not exact.reaches(series.t, series.mu):
        worse = not exact.reaches(series.t, 0.0)
        return series.exactly("stop", "regressed" if worse else "not_better", guards)
    if _is_lost_by_value(guards, p):
        return series.exactly("stop", "guard_failed", guards)
    return series.exactly("pass", None, guards)


def _exact_confirm(
    series: _Series, screen: Sequence[MeasuredBlock], block: MeasuredBlock, p: RuleParameters
) -> Ruling:
    guards = {guard.name: guard_d(block, guard) for guard in p.guards}
    held_out = {HELD_OUT: held_out_d(block, p)} if p.held_out_cells else {}
    shown = guards | held_out
    if not exact.reaches(series.t, series.mu):
        return series.exactly("stop", "not_confirmed", shown)
    if any(exact.is_lost(d, p.judging.held_out_allowed_loss) for d in held_out.values()):
        return series.exactly("stop", "overfit", shown)
    if _is_lost_by_value(guards, p):
        return series.exactly("stop", "guard_failed", shown)
    hold = _hold(series.t, [block], [*screen, block], p)
    return series.exactly("hold" if hold else "pass", hold or "promoted", shown)


def _is_lost_by_value(guards: dict[str, float], p: RuleParameters) -> bool:
    return any(exact.is_lost(guards[guard.name], guard.allowed_loss) for guard in p.guards)


def _guards(blocks: Sequence[MeasuredBlock], p: RuleParameters) -> list[_Kept]:
    return [
        _Kept(guard.name, [guard_d(block, guard) for block in blocks], guard.allowed_loss)
        for guard in p.guards
    ]


def guard_d(block: MeasuredBlock, guard: GuardRule) -> float:
    """Return the plain mean of a guard's log-ratios over its cells, positive when better."""
    values = [signed(block, guard.metric, guard.direction, cell) for cell in guard.cells]
    return math.fsum(values) / len(values)


def _held_out(blocks: Sequence[MeasuredBlock], p: RuleParameters) -> list[_Kept]:
    if not p.held_out_cells:
        return []
    series = [held_out_d(block, p) for block in blocks]
    return [_Kept(HELD_OUT, series, p.judging.held_out_allowed_loss)]


def _recorded(guards: Sequence[_Kept]) -> dict[str, float]:
    kept = {guard.name: guard.kept for guard in guards}
    return kept | {f"{guard.name}, lost": guard.lost for guard in guards}


def _is_lost(guards: Sequence[_Kept], p: RuleParameters) -> bool:
    return any(guard.is_lost(-math.log(p.judging.guard_alpha)) for guard in guards)


def _all_kept(guards: Sequence[_Kept], p: RuleParameters) -> bool:
    return all(guard.kept >= -math.log(p.judging.guard_alpha) for guard in guards)


def _is_spent(spent_s: float, p: RuleParameters) -> bool:
    return p.judging.max_judge_s is not None and spent_s >= p.judging.max_judge_s


def _hold(
    claim: float,
    confirm: Sequence[MeasuredBlock],
    both: Sequence[MeasuredBlock],
    p: RuleParameters,
) -> str | None:
    """Return why a promotion must wait for a person: `carry_over`, `suspect_gain` or None."""
    found = order_effect(order_pairs(both, p))
    if found is not None:
        apart, chance = found
        most = max(math.log1p(p.min_effect), 2.0 * abs(p.order_effect))
        if abs(apart) > most and chance < SIGNIFICANT:
            return "carry_over"
    is_suspect = claim > math.log(p.judging.suspect_gain) or suspect_cells(confirm, p)
    return "suspect_gain" if is_suspect else None


def suspect_cells(blocks: Sequence[MeasuredBlock], p: RuleParameters) -> dict[str, float]:
    """Return the cells that are better by more than `suspect_gain`, each with its log-ratio.

    One of many cells at ten times the speed buys the whole, while the whole looks honest.
    None under `signflip-1`. Source: known faults, R9.
    """
    if p.judging.rule == "signflip-1":
        return {}
    most = math.log(p.judging.suspect_gain)
    own = {
        cell: evidence.trimmed_mean([cell_d(block, cell, p) for block in blocks])
        for cell in stage_cells("confirm", p)
    }
    return {cell: d for cell, d in own.items() if d > most}


def order_pairs(blocks: Sequence[MeasuredBlock], p: RuleParameters) -> list[Pair]:
    """Return every counted (block, cell) pair with the order in which its arms ran."""
    return [
        Pair(cell=cell, d=cell_d(block, cell, p), champion_first=first)
        for block in blocks
        for cell, first in block.champion_first.items()
    ]
