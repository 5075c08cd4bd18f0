"""One attempt by the rule itself: runs as a ledger holds them, decided by `judge.verdict`."""

import math
from collections.abc import Mapping
from typing import Final

from thermite.judge.measure.block import measured, paired
from thermite.judge.simulate.edit import Edit, Machine, Outcome
from thermite.judge.verdict.coin import draw_order
from thermite.judge.verdict.params import rule_parameters
from thermite.judge.verdict.rule import stage_cells
from thermite.judge.verdict.walk import walk
from thermite.schema.contract import Contract, Judging, Objective, Primary, Project
from thermite.schema.judging import Run
from thermite.schema.kit import BuildSection, CheckSection, Kit, RunSection, TimeMetric
from thermite.schema.rule import MeasuredBlock, RuleParameters
from thermite.schema.stage import RunRecord
from thermite.schema.verdict import Arm, JudgeStage

RUN_NS: Final = 50_000_000
"""A run without noise, ns: about the program of the measured noise (judging, 2.1)."""
METRIC: Final = "seconds"
"""What every simulated run is measured by."""


def parameters(
    min_effect: float, *, cells: int = 1, held_out: int = 0, judging: Judging | None = None
) -> RuleParameters:
    """Return the rule's parameters for a contract that asks for less time in so many cells."""
    names = [f"cell {number + 1}" for number in range(cells + held_out)]
    kit = Kit(
        schema_version=1,
        name="simulated",
        target="cpu",
        build=BuildSection(command=["true"], outputs=["program"]),
        cells={name: {} for name in names},
        run=RunSection(command=["{build:program}"]),
        metrics={METRIC: TimeMetric()},
        check=CheckSection(command=["true"]),
    )
    contract = Contract(
        schema_version=1,
        name="simulated",
        campaign="hill_climb",
        task="simulated",
        project=Project(repo="simulated", commit="0" * 40),
        cells=names[:cells],
        held_out_cells=names[cells:],
        objective=Objective(primary=Primary(metric=METRIC, direction="min"), min_effect=min_effect),
        judging=judging or Judging(),
    )
    return rule_parameters(contract, kit, "cpu")


class SignFlip:
    """The rule as it stands, with its two stages; a campaign's seed draws its orders."""

    def __init__(self, p: RuleParameters, order_seed: bytes) -> None:
        self.p, self.order_seed = p, order_seed

    def judge(self, k: int, edit: Edit, champion: float, machine: Machine) -> Outcome:
        """Return the verdict on an edit of a champion of that speed, at the index k from 1."""
        timed = Timed(self.p, self.order_seed, k, speeds(self.p, edit, champion), machine)
        *before, (stage, _, ruling) = walk(timed.block, self.p, k)
        claim = ruling.t if stage == "confirm" else 0.0
        return Outcome(verdict=str(ruling.result), blocks=len(before) + 1, claim=claim)


class ScreenOnly(SignFlip):
    """The rule without its second stage: what it would be worth. For comparison only."""

    def judge(self, k: int, edit: Edit, champion: float, machine: Machine) -> Outcome:
        """Promote whatever passes screen."""
        timed = Timed(self.p, self.order_seed, k, speeds(self.p, edit, champion), machine)
        *before, (_, _, ruling) = walk(timed.block, self.p, k, stages=["screen"])
        verdict = "promoted" if ruling.action == "pass" else str(ruling.result)
        return Outcome(verdict=verdict, blocks=len(before) + 1, claim=ruling.t)


def speeds(p: RuleParameters, edit: Edit, champion: float) -> dict[tuple[str, Arm], float]:
    """Return how fast each arm is in each cell, a champion of that speed beside an edit of it."""
    gains = dict.fromkeys(p.cells, edit.gain)
    gains |= dict.fromkeys(p.held_out_cells, edit.held_out)
    found: dict[tuple[str, Arm], float] = {}
    for cell, gain in gains.items():
        found[cell, "champion"] = champion
        found[cell, "candidate"] = champion + gain
    return found


class Timed:
    """Both arms of an attempt on a machine, in the order that the coin of its index k draws."""

    def __init__(
        self,
        p: RuleParameters,
        order_seed: bytes,
        k: int,
        speeds: Mapping[tuple[str, Arm], float],
        machine: Machine,
    ) -> None:
        self._p, self._order_seed, self._k = p, order_seed, k
        self._speeds, self._machine = speeds, machine

    def block(self, stage: JudgeStage, number: int) -> MeasuredBlock:
        """Return a block of a stage, measured."""
        runs = paired(self.runs(stage, number))
        return measured(stage, number, runs, self._p.metrics)

    def runs(self, stage: JudgeStage, number: int) -> list[Run]:
        """Return the runs of a block of a stage, attempt 1's."""
        cells = stage_cells(stage, self._p)
        turns = draw_order(self._order_seed, self._k, stage, number, cells)
        order = [(turn.cell, arm) for turn in turns for arm in turn.arms]
        return [
            _run(stage, number, cell, arm, place, self._t_ns(cell, arm))
            for place, (cell, arm) in enumerate(order)
        ]

    def _t_ns(self, cell: str, arm: Arm) -> int:
        ln_time = self._machine.ln_time(self._speeds[cell, arm])
        return max(1, round(RUN_NS * math.exp(ln_time)))


def _run(  # noqa: PLR0917 - one place makes runs
    stage: JudgeStage, block: int, cell: str, arm: Arm, position: int, t_ns: int
) -> Run:
    record = RunRecord(
        t_ns=t_ns,
        utime_ns=t_ns,
        stime_ns=0,
        nvcsw=0,
        nivcsw=0,
        minflt=0,
        majflt=0,
        maxrss_kib=0,
        cpus=[],
        started_at="",
        suspended_ns=0,
    )
    return Run(
        attempt=1,
        tries=1,
        stage=stage,
        block=block,
        cell=cell,
        arm=arm,
        position=position,
        record=record,
        flags=[],
        isolation=None,
        outcome="ok",
        reason=None,
    )
