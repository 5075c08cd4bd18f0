"""When values decide by themselves: the rule `exact-1` for what a check prints.

Accuracy and size are no times: where primary and guards all come from the check, and three
blocks show one and the same value of each arm in each cell, more blocks would show nothing
new. Then values decide, and the campaign's alpha is untouched, since nothing is left to luck.
At the first value that differs, the attempt goes on under `signflip-1`. Source: the design
page on judging, 3.2.
"""

import math
from collections.abc import Sequence
from typing import Final

from thermite.schema.rule import MeasuredBlock, RuleParameters

RULE: Final = "exact-1"
BLOCKS: Final = 3
"""Counted blocks of screen that must show the same values (judging, 3.2)."""
NOT_EXACT: Final = "not_exact"
"""Why a confirm block is dropped whose visible values are others (judging, 3.2)."""
LAST_DIGITS: Final = 1e-12
"""Two ways to one logarithm differ in its last digits, and a value may equal its bound."""


def decides(screen: Sequence[MeasuredBlock], p: RuleParameters) -> bool:
    """Return whether screen's counted blocks are the three of an exact comparison."""
    return len(screen) == BLOCKS and is_same(screen, p)


def is_same(blocks: Sequence[MeasuredBlock], p: RuleParameters) -> bool:
    """Return whether all blocks show one and the same value of each arm in each visible cell."""
    if not _is_eligible(p):
        return False
    first = _visible(blocks[0], p)
    return all(_visible(block, p) == first for block in blocks[1:])


def is_broken_by(block: MeasuredBlock, screen: Sequence[MeasuredBlock], p: RuleParameters) -> bool:
    """Return whether a block of confirm ends an exact comparison: its visible values differ."""
    return decides(screen, p) and not is_same([*screen, block], p)


def reaches(found: float, least: float) -> bool:
    """Return whether a log-ratio reaches a bound, its last digits aside."""
    return found >= least - LAST_DIGITS


def is_lost(found: float, allowed_loss: float) -> bool:
    """Return whether a log-ratio lost more than is allowed, a fraction."""
    return not reaches(found, math.log1p(-allowed_loss))


def _is_eligible(p: RuleParameters) -> bool:
    return all(p.metrics[name].kind == "check" for name in _names(p))


def _names(p: RuleParameters) -> list[str]:
    return [p.primary.metric, *(guard.metric for guard in p.guards)]


def _visible(block: MeasuredBlock, p: RuleParameters) -> list[tuple[float, float]]:
    return [block.values[name][cell] for name in _names(p) for cell in p.cells]
