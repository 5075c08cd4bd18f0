"""The evidence of one promotion: recompute it from runs and checks, and say what is missing.

Works on decoded events, whether a whole ledger or one file carries them. Nothing that was
decided is trusted: the coin, each block's D, the evidence and the gain are made again.

Source: ledger and signing, 3.14 (checks 4 to 7); judging, 3.1 and 3.2.
"""

import math
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from thermite.audit.bounds import SAME, bounds_problem, is_same, is_same_interval
from thermite.errors import InfrastructureError, LedgerError
from thermite.judge.measure.block import Pair, measured, paired
from thermite.judge.verdict import exact, rule, words
from thermite.judge.verdict.coin import commitment, draw_order
from thermite.judge.verdict.params import alpha_k
from thermite.schema import event as e
from thermite.schema.contract_rules import confirm_evidence
from thermite.schema.promotion import CountedBlocks, Summary, Tree
from thermite.schema.rule import MeasuredBlock, RuleParameters
from thermite.schema.verdict import JudgeStage

DROPS: Final = frozenset(
    {"steal", "suspended", "throttled", "foreign_process", "infra", "interrupted", "not_exact"}
)
"""Why a block may be dropped (judging, 3.1)."""


_Fact = TypeVar("_Fact")


class Evidence:
    """The events of the attempt that one promotion rests on.

    Raises:
        LedgerError: they are not there, or not of one promotion.
    """

    def __init__(self, events: Sequence[e.Event], promoted: e.Event) -> None:
        if not isinstance(promoted.data, e.ChampionPromoted):
            raise LedgerError("the event is no champion_promoted")
        self.promoted, self.assignment = promoted.data, promoted.assignment or ""
        own = [event.data for event in events if event.assignment == promoted.assignment]
        self.created = _one([d for d in own if isinstance(d, e.AssignmentCreated | e.LocalJob)])
        ended = [data.order_seed for data in own if isinstance(data, e.AssignmentEnded)]
        self.seed = _hex(ended[0]) if ended else None
        mine = [data for data in own if getattr(data, "attempt", None) == self.promoted.attempt]
        verdicts = [d for d in mine if isinstance(d, e.Verdict) and d.verdict == "promoted"]
        self.verdict = _one(verdicts)
        if mine.index(self.verdict) > mine.index(self.promoted):
            raise LedgerError("it was promoted before its verdict")
        self.facts = [d for d in mine if getattr(d, "tries", None) == self.verdict.tries]
        self.start = _one([d for d in self.facts if isinstance(d, e.JudgeStarted)])
        try:
            self.params = msgspec.convert(self.start.params, RuleParameters)
        except msgspec.ValidationError as error:
            raise LedgerError(f"the parameters of the rule can't be read: {error}") from None
        grades = [event.data.grade for event in events if isinstance(event.data, e.RigSelftest)]
        self.grade = grades[-1] if grades else None

    def summary(self) -> Summary:
        """Return what the events say of the promotion."""
        start, p, created = self.start, self.params, self.created
        trees = {data.arm: data.tree for data in self.facts if isinstance(data, e.Build)}
        counted = {stage: len(self._numbers(stage)) for stage in ("screen", "confirm")}
        if set(trees) != {"candidate", "champion"}:
            raise LedgerError("the build of an arm is missing")
        return Summary(
            assignment=self.assignment,
            attempt=self.promoted.attempt,
            k=start.k,
            candidate=Tree(commit=start.candidate, tree=trees["candidate"]),
            champion=Tree(commit=start.champion, tree=trees["champion"]),
            project=created.project,
            kit=created.kit,
            contract_sha256=start.contract_sha256,
            metric=p.primary.metric,
            direction=p.primary.direction,
            cells=p.cells,
            held_out_cells=p.held_out_cells,
            blocks=CountedBlocks(screen=counted["screen"], confirm=counted["confirm"]),
            lnE=self._last("confirm").lnE,
            gain=self.promoted.gain,
            interval=self.promoted.interval,
            isolation=start.isolation,
            grade=self.grade,
        )

    def check(self) -> None:
        """Recompute everything that the promotion rests on.

        Raises:
            LedgerError: something does not carry it; the text says what.
        """
        start, p = self.start, self.params
        _need(
            (start.candidate, start.champion) == (self.promoted.commit, self.promoted.previous),
            "it was judged on other commits than it names",
        )
        alpha = alpha_k(p.judging, start.k)
        _need(math.isclose(start.alpha_k, alpha), f"k {start.k} gives alpha_k {alpha:g}")
        if self.seed is not None:
            made = commitment(self.seed).hex()
            _need(made == self.created.order_commitment, "the coin is not the one committed to")
        screen, confirm = self._blocks("screen"), self._blocks("confirm")
        self._check_stage("screen", screen, rule.decide_screen(screen, p, full=False))
        ruling = rule.decide_confirm(screen, confirm, p, start.k)
        self._check_stage("confirm", confirm, ruling)
        gain = math.expm1(ruling.t)
        for told in (self.verdict.gain, self.promoted.gain):
            _need(is_same(told, gain), f"the runs give a gain of {gain}")
        interval = words.claim(self._last("confirm"))[1]
        for other in (self.verdict.interval, self.promoted.interval):
            _need(is_same_interval(other, interval), f"the runs give an interval of {interval}")

    def _check_stage(
        self, stage: JudgeStage, blocks: Sequence[MeasuredBlock], found: rule.Ruling
    ) -> None:
        said, judging = self._last(stage), self.params.judging
        _need(said.action in {"pass", "hold"}, f"{stage} did not end with a pass")
        _need(said.n == found.n, f"{stage} has {found.n} blocks and says {said.n}")
        for name, told, made in (("lnE", said.lnE, found.ln_e), ("T", said.T, found.t)):
            _need(is_same(told, made), f"{stage} says {name} {told}, and its runs give {made}")
        _need(said.rule == found.rule, f"{stage} says {said.rule}, and its runs {found.rule}")
        bounds = bounds_problem(said, blocks, self.params)
        _need(bounds is None, f"{stage} says {said.lcb} to {said.ucb}, and its runs give {bounds}")
        if found.rule == exact.RULE:
            _need(found.action in {"pass", "hold"}, f"{stage}: the values do not pass")
            return
        fewest, level = judging.min_blocks, -math.log(judging.screen_alpha)
        if stage == "confirm":
            fewest = judging.confirm_min_blocks
            level = confirm_evidence(judging, self.start.k)
        _need(found.n >= fewest, f"{stage} has {found.n} blocks, and {fewest} are the fewest")
        _need(found.ln_e >= level - SAME, f"{stage}: lnE {found.ln_e} is below {level}")
        least = math.log1p(self.params.min_effect)
        _need(found.t >= least - SAME, f"{stage}: T {found.t} is below {least}")
        for name, kept in found.guards.items() if stage == "confirm" else ():
            if not name.endswith(", lost"):
                shown = kept >= -math.log(judging.guard_alpha) - SAME
                _need(shown, f"{name} may have lost more than allowed")

    def _blocks(self, stage: JudgeStage) -> list[MeasuredBlock]:
        """Return the counted blocks of a stage, each made anew from its runs and checks."""
        cells = rule.stage_cells(stage, self.params)
        made: list[MeasuredBlock] = []
        for at, block in enumerate(self._all(stage)):
            name = f"{stage} block {at}"
            _need(block.block == at, f"{name} is missing")
            pairs = paired(
                d
                for d in self.facts
                if isinstance(d, e.Run | e.Check) and (d.stage, d.block) == (stage, at)
            )
            self._check_order(name, stage, at, cells, pairs)
            if block.drops:
                _need(
                    DROPS.issuperset(block.drops), f"{name} was dropped for no reason of the rule"
                )
                continue
            whole = sorted((cell, arm) for cell in cells for arm in ("candidate", "champion"))
            good = sorted((r.cell, r.arm) for r, c in pairs if r.outcome == "ok" and c and c.passed)
            _need(good == whole, f"{name} lacks a run that ended well or a check that passed")
            try:
                found = measured(stage, at, pairs, self.params.metrics)
            except (KeyError, InfrastructureError) as error:
                raise LedgerError(f"{name} has no value of {error}") from None
            total = rule.stage_d(stage, found, self.params)
            told = is_same(block.D, total)
            _need(told, f"{name} says D {block.D}, and its runs give {total}")
            made.append(found)
        _need(made, f"{stage} has no block that counts")
        return made

    def _check_order(
        self, name: str, stage: JudgeStage, at: int, cells: list[str], pairs: Sequence[Pair]
    ) -> None:
        if self.seed is None:
            return
        turns = draw_order(self.seed, self.start.k, stage, at, cells)
        drawn = [(turn.cell, arm) for turn in turns for arm in turn.arms]
        ran = [(run.cell, run.arm) for run, _ in pairs]
        _need(ran == drawn[: len(ran)], f"{name} did not run in the coin's order")

    def _all(self, stage: str) -> list[e.Block]:
        return [d for d in self.facts if isinstance(d, e.Block) and d.stage == stage]

    def _numbers(self, stage: str) -> list[int]:
        return [block.block for block in self._all(stage) if block.dropped is None]

    def _last(self, stage: str) -> e.Decision:
        made = [d for d in self.facts if isinstance(d, e.Decision) and d.stage == stage]
        if not made:
            raise LedgerError(f"{stage} has no decision")
        return made[-1]


def _one(facts: Sequence[_Fact]) -> _Fact:
    if len(facts) != 1:
        raise LedgerError(
            f"assignment, judge_started and the verdict come once each, not {len(facts)} times"
        )
    return facts[0]


def _need(good: object, why: str) -> None:
    if not good:
        raise LedgerError(why)


def _hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise LedgerError("the revealed coin is no hex") from None
