"""Runs, checks, blocks and decisions, as the facts that the ledger keeps of them."""

from collections.abc import Mapping

import msgspec

from thermite.judge.check.examine import CheckOutcome
from thermite.judge.check.result import CheckResult
from thermite.judge.measure.disturbance import flags
from thermite.judge.measure.metric import Missing, problem, value
from thermite.judge.measure.printed import printed_numbers
from thermite.judge.run.execute import RunOutcome
from thermite.judge.verdict import reason
from thermite.judge.verdict.rule import Ruling, cell_d, stage_cells, stage_d
from thermite.schema.event import Block, Check, Decision, Run
from thermite.schema.rule import MeasuredBlock, MetricRule, RuleParameters
from thermite.schema.strict import Strict
from thermite.schema.verdict import Arm, Failure, JudgeStage


class Identity(Strict):
    """Whose facts these are: attempt (None for a re-anchor) and try."""

    attempt: int | None
    tries: int

    def at(self, stage: JudgeStage, block: int | None, cell: str, arm: Arm, position: int) -> Run:
        """Return the fact of a run in its place, before it is known how it went."""
        return Run(
            attempt=self.attempt,
            tries=self.tries,
            stage=stage,
            block=block,
            cell=cell,
            arm=arm,
            position=position,
            record=None,
            flags=[],
            isolation=None,
            outcome="ok",
            reason=None,
        )

    def counted(self, block: MeasuredBlock, p: RuleParameters) -> Block:
        """Return the fact of a block that counts."""
        return Block(
            attempt=self.attempt,
            tries=self.tries,
            stage=block.stage,
            block=block.block,
            d={cell: cell_d(block, cell, p) for cell in stage_cells(block.stage, p)},
            D=stage_d(block.stage, block, p),
            dropped=None,
        )

    def dropped(self, stage: JudgeStage, block: int, why: str) -> Block:
        """Return the fact of a block that does not count."""
        return Block(
            attempt=self.attempt,
            tries=self.tries,
            stage=stage,
            block=block,
            d={},
            D=None,
            dropped=why,
        )

    def decided(self, stage: JudgeStage, ruling: Ruling) -> Decision:
        """Return the fact of what the rule said after a block."""
        return decision(self.attempt, self.tries, stage, ruling)


def decision(attempt: int | None, tries: int, stage: JudgeStage, ruling: Ruling) -> Decision:
    """Return what is recorded of a ruling."""
    return Decision(
        attempt=attempt,
        tries=tries,
        stage=stage,
        n=ruling.n,
        lnE=ruling.ln_e,
        lnE_futility=ruling.ln_e_futility,
        T=ruling.t,
        se=ruling.se,
        lcb=ruling.lcb,
        ucb=ruling.ucb,
        guards=ruling.guards,
        rule=ruling.rule,
        action=ruling.action,
        result=ruling.result,
    )


def exit_facts(fact: Run, outcome: RunOutcome) -> list[Run | Check]:
    """Return the facts of a run that failed before it could be checked."""
    match outcome.failure:
        case "run_killed" if outcome.limit is not None:
            why = reason.run_killed(outcome.limit)
        case "run_outputs_refused":
            why = reason.run_outputs_refused(outcome.problems)
        case _:
            why = reason.run_exited(outcome.exit_code, outcome.stderr)
    return [_ran(fact, outcome, outcome.failure, why)]


def as_facts(
    fact: Run, outcome: RunOutcome, said: CheckOutcome, metrics: Mapping[str, MetricRule]
) -> list[Run | Check]:
    """Return the facts of a run that was checked.

    Raises:
        InfrastructureError: the kit's parameter of a rate is no number above zero.
    """
    failure, why = _failure(fact, outcome, said, metrics)
    result = said.result
    check = Check(
        attempt=fact.attempt,
        tries=fact.tries,
        stage=fact.stage,
        block=fact.block,
        cell=fact.cell,
        arm=fact.arm,
        passed=result is not None and result.passed,
        fields=printed_numbers(result.fields) if result else {},
        reasons=_reasons(result, why),
    )
    return [_ran(fact, outcome, failure, why), check]


def _failure(
    fact: Run, outcome: RunOutcome, said: CheckOutcome, metrics: Mapping[str, MetricRule]
) -> tuple[Failure | None, str | None]:
    if said.result is None:
        return "check_failed", reason.no_result(said.exit_code, said.stderr)
    if not said.result.passed:
        return "check_failed", reason.check_failed(said.result.reasons)
    problems = []
    for name, rule in metrics.items():
        found = value(name, rule, fact.cell, outcome.record.t_ns, said.result.fields)
        if isinstance(found, Missing):
            return "value_refused", reason.value_missing(found.field, found.got)
        doubt = problem(name, found)
        problems += [doubt] if doubt else []
    return ("value_refused", reason.implausible(problems)) if problems else (None, None)


def _reasons(result: CheckResult | None, why: str | None) -> list[str]:
    if result is None:
        return [why] if why else []
    texts = [reason.escape(text) for text in result.reasons]
    return reason.joined_reasons(texts, reason.RUN_BUDGET)


def _ran(fact: Run, outcome: RunOutcome, failure: Failure | None, why: str | None) -> Run:
    return msgspec.structs.replace(
        fact,
        record=outcome.record,
        flags=flags(outcome.record),
        isolation=outcome.isolation,
        outcome=failure or "ok",
        reason=why,
    )
