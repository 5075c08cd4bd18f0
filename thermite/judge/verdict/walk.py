"""The rule's way through one attempt: screen, then confirm on fresh blocks.

A job's own walk has builds, processes and a ledger around each step; whoever has blocks at
hand, drawn or measured, takes this one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from thermite.judge.verdict.rule import Ruling, decide_confirm, decide_screen
from thermite.schema.rule import MeasuredBlock, RuleParameters
from thermite.schema.verdict import JudgeStage

STAGES: Final[tuple[JudgeStage, ...]] = ("screen", "confirm")

Draw: TypeAlias = Callable[[JudgeStage, int], MeasuredBlock | None]
"""Makes a stage's next block, whose number it is given; None where there is none to be had."""


class Step(NamedTuple):
    """A block, and what was decided after it in its stage."""

    stage: JudgeStage
    block: MeasuredBlock
    ruling: Ruling


def walk(
    draw: Draw,
    p: RuleParameters,
    k: int,
    *,
    stages: Sequence[JudgeStage] = STAGES,
    full: bool = False,
) -> Iterator[Step]:
    """Yield block after block to the one that ends the attempt, or the last that there is.

    Args:
        k: the attempt's index, from 1.
        full: whether figures that decide nothing are there too.
    """
    made: dict[JudgeStage, list[MeasuredBlock]] = {"screen": [], "confirm": []}
    for stage in stages:
        action = "continue"
        while action == "continue":
            block = draw(stage, len(made[stage]))
            if block is None:
                return
            made[stage].append(block)
            if stage == "screen":
                ruling = decide_screen(made[stage], p, full=full)
            else:
                ruling = decide_confirm(made["screen"], made[stage], p, k, full=full)
            action = ruling.action
            yield Step(stage, block, ruling)
        if action != "pass":
            return
