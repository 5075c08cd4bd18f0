"""One try of an attempt, made again from its runs: blocks, rulings, and what they lead to."""

import math
from collections.abc import Sequence

import msgspec

from thermite.audit.bounds import SAME, bounds_problem
from thermite.errors import InfrastructureError
from thermite.judge.measure.block import broken_constraints, measured, paired
from thermite.judge.measure.disturbance import flags
from thermite.judge.verdict import exact, words
from thermite.judge.verdict.rule import (
    Ruling,
    cell_d,
    decide_confirm,
    decide_re_anchor,
    decide_screen,
    stage_d,
)
from thermite.schema.event import Block, Check, Decision, Interval, Run
from thermite.schema.rule import MeasuredBlock, RuleParameters
from thermite.schema.verdict import BLAME, JudgeStage

VOID = frozenset({"infra", "interrupted"})
"""Why a block is dropped that no run can tell: the rig failed, or was ended."""
NUDGE = 1e-11
"""Moves ln E of forty blocks by less than SAME: a threshold within it may fall either way."""


class Try:
    """The facts of one try, in order; p is None until its parameters are known."""

    def __init__(self, p: RuleParameters | None = None, k: int = 0) -> None:
        self.p, self.k = p, k
        self.facts: list[Run | Check] = []
        self.failed: Run | None = None
        self._by_block: dict[tuple[JudgeStage, int | None], list[Run | Check]] = {}
        self.seconds = 0.0
        self.counted: dict[JudgeStage, list[MeasuredBlock]] = {}
        self.numbers: dict[str, int] = {}
        self.last: Ruling | None = None
        self.told: Decision | None = None

    def take(self, fact: Run | Check) -> str | None:
        """Take a run or a check; return what is wrong with it, or None."""
        self.facts.append(fact)
        self._by_block.setdefault((fact.stage, fact.block), []).append(fact)
        if not isinstance(fact, Run):
            return None
        if self.failed is None and fact.outcome != "ok":
            self.failed = fact
        if fact.record is None:
            return None
        self.seconds += fact.record.t_ns / 1e9
        found = flags(fact.record)
        return None if found == fact.flags else ", ".join(found) or "undisturbed"

    def forget(self) -> None:
        """Keep what was made of the facts and not the facts: a verdict stands on them."""
        self.facts.clear()
        self._by_block.clear()

    def own(self, block: Block) -> list[Run | Check]:
        """Return the runs and checks of a block."""
        return self._by_block.get((block.stage, block.block), [])

    def count(self, block: Block, p: RuleParameters) -> str | None:
        """Make a block again; return how it differs, or None when it is as recorded."""
        number = self.numbers.get(block.stage, 0)
        self.numbers[block.stage] = number + 1
        if block.block != number:
            return f"block {number} is next"
        own = self.own(block)
        reason = block.dropped if block.dropped in VOID else self._dropped(block, own, p)
        if reason != block.dropped:
            return f"dropped: {reason}" if reason else "it counts"
        return None if reason is not None else self._counted_problem(block, own, p)

    def _dropped(self, block: Block, own: Sequence[Run | Check], p: RuleParameters) -> str | None:
        reason, screen = dropped(own, p), self.counted.get("screen", [])
        if reason is not None or block.stage != "confirm" or not exact.decides(screen, p):
            return reason
        try:
            made = measured(block.stage, block.block, paired(own), p.metrics)
        except (KeyError, InfrastructureError):
            return None  # it makes no whole block, which is said where it is counted
        return exact.NOT_EXACT if exact.is_broken_by(made, screen, p) else None

    def _counted_problem(
        self, block: Block, own: Sequence[Run | Check], p: RuleParameters
    ) -> str | None:
        try:
            made = measured(block.stage, block.block, paired(own), p.metrics)
            whole = stage_d(block.stage, made, p)
        except (KeyError, InfrastructureError):
            return "its runs make no whole block"
        self.counted.setdefault(block.stage, []).append(made)
        parts = {cell: cell_d(made, cell, p) for cell in block.d if cell in made.champion_first}
        if parts.keys() != block.d.keys() or block.D is None:
            return "it has other cells"
        off = [abs(parts[cell] - block.d[cell]) for cell in parts] + [abs(whole - block.D)]
        return f"D {whole:.9f}" if max(off) > SAME else None

    def decide(self, stage: JudgeStage, p: RuleParameters, nudge: float = 0.0) -> Ruling | None:
        """Return what the rule says of the counted blocks of a stage, None without any."""
        blocks = self.counted.get(stage, [])
        if nudge:
            blocks = [_moved(one, nudge) for one in blocks]
        if not blocks:
            return None
        match stage:
            case "screen":
                return decide_screen(blocks, p, spent_s=self.seconds, full=False)
            case "confirm":
                screen = self.counted.get("screen", [])
                return decide_confirm(screen, blocks, p, self.k, spent_s=self.seconds, full=False)
            case _:
                return decide_re_anchor(blocks, p)

    def check(self, decision: Decision, p: RuleParameters) -> str | None:
        """Decide again; return how it differs, or None when the recorded decision stands."""
        made = self.decide(decision.stage, p)
        self.last, self.told = made, decision
        if made is None:
            return "no block was counted"
        figures = [(made.ln_e, decision.lnE), (made.t, decision.T)]
        if made.n != decision.n or any(abs(a - b) > SAME for a, b in figures):
            return f"n {made.n}, ln E {made.ln_e:.7f}, T {made.t:.7f}"
        return self._ruled_otherwise(made, decision, p) or bounds_problem(
            decision, self.counted[decision.stage], p
        )

    def _ruled_otherwise(self, made: Ruling, decision: Decision, p: RuleParameters) -> str | None:
        recorded = (decision.action, decision.result, decision.rule)
        if (made.action, made.result, made.rule) == recorded:
            return None
        near = (self.decide(decision.stage, p, nudge) for nudge in (-NUDGE, NUDGE))
        if any(one is not None and (one.action, one.result, one.rule) == recorded for one in near):
            return None
        return f"rule {made.rule}" if decision.rule != made.rule else said(made)

    def kind(self) -> str | None:
        """Return the verdict that the facts lead to, None when they lead to none."""
        failed = self.failed
        if failed is not None:
            blame = BLAME[failed.arm]
            return next((kind for name, kind in blame.items() if name == failed.outcome), None)
        if self.p is not None and self.p.constraints:
            broken = broken_constraints(paired(self.facts), self.p.constraints, self.p.metrics)
            if broken:
                ours = all(arm == "candidate" for arm, _ in broken)
                return "constraint_failed" if ours else "crash_infra"
        return None if self.last is None else self.last.result

    @property
    def gain(self) -> float | None:
        """The claim of the last decision, a fraction."""
        return None if self.last is None else math.expm1(self.last.t)

    @property
    def interval(self) -> Interval | None:
        """The interval of that claim, as its decision tells it: `check` has looked at it."""
        return None if self.told is None else words.claim(self.told)[1]


def said(ruling: Ruling) -> str:
    """Return an action and its result in words."""
    return ruling.action + (f", {ruling.result}" if ruling.result else "")


def dropped(own: Sequence[Run | Check], p: RuleParameters) -> str | None:
    """Return why a block does not count, None when it does."""
    runs = [fact for fact in own if isinstance(fact, Run)]
    failed = [run.outcome for run in runs if run.outcome != "ok"]
    if failed:
        return failed[0]
    if p.constraints and broken_constraints(paired(own), p.constraints, p.metrics):
        return "constraint_failed"
    return ", ".join(sorted({flag for run in runs for flag in run.flags})) or None


def _moved(block: MeasuredBlock, nudge: float) -> MeasuredBlock:
    ratios = {
        metric: {cell: value + nudge for cell, value in cells.items()}
        for metric, cells in block.ln_ratio.items()
    }
    return msgspec.structs.replace(block, ln_ratio=ratios)
