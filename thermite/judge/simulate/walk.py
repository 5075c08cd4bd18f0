"""The rule's way through one attempt: screen, then confirm on fresh blocks.

It is the job's without builds and processes, whoever makes the blocks.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from thermite.judge.verdict.rule import Ruling, decide_confirm, decide_screen
from thermite.schema.rule import MeasuredBlock, RuleParameters
from thermite.schema.verdict import JudgeStage

STAGES: Final[tuple[JudgeStage, ...]] = ("screen", "confirm")

Draw: TypeAlias = Callable[[JudgeStage, int], MeasuredBlock]
"""Makes a stage's next block, whose number it is given."""


class Step(NamedTuple):
    """A block, and what was decided after it."""

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
    """Yield block after block to the one that ends the attempt, or the last of its stages.

    Args:
        k: the attempt's index, from 1.
        full: whether figures that decide nothing are there too.
    """
    made: dict[JudgeStage, list[MeasuredBlock]] = {"screen": [], "confirm": []}
    for stage in stages:
        action = "continue"
        while action == "continue":
            made[stage].append(draw(stage, len(made[stage])))
            if stage == "screen":
                ruling = decide_screen(made[stage], p, full=full)
            else:
                ruling = decide_confirm(made["screen"], made[stage], p, k, full=full)
            action = ruling.action
            yield Step(made[stage][-1], ruling)
        if action != "pass":
            return
