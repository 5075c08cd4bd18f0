"""Evidence in a series of signed log-ratios: the sign-flip mixture e-process.

When a candidate equals its champion, the coin makes each value as likely as its opposite,
whatever the noise. Then every factor 1 + tanh(scale * value) has the mean 1 and so has
their running product, so that the product passes 1/alpha with a chance of at most alpha,
however often it is looked at. Source: the design page on judging, 3.2.

Units: values are natural logarithms of ratios, positive is better.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

SCALES: Final = (25.0, 50.0, 100.0, 200.0, 400.0, 800.0, 1600.0)
"""The lambdas of the mixture (judging, 3.2): steps of 4 % down to 0.06 % saturate a factor."""
SIGN_STAKE: Final = 0.98
"""What the eighth part of the mixture stakes on the sign alone (judging, 3.2)."""
BOUND_EVIDENCE: Final = math.log(40.0)
"""ln E at which a bound is excluded: 2.5 % on each side (judging, 3.2)."""
BOUND_RANGE: Final = 3.0
"""Bounds are looked for in [-3, 3] (judging, 3.2)."""
BOUND_STEP: Final = 1e-6
"""And to this precision (judging, 3.2)."""
TRIMMED_PART: Final = 5
"""One value in five is dropped at each end (judging, 3.2: 20 % trimmed mean)."""
KEPT_SHARE: Final = 0.6
"""What a 20 % trimmed mean keeps, the divisor of its standard error (judging, 3.2)."""

KEPT_VALUES: Final = 4096
"""Values whose factors are kept: a series is looked at anew after each of its blocks."""

_LN2: Final = math.log(2.0)
_NOTHING: Final = 1e-17
"""Below it ln(1 + x) changes no digit of ln 2."""
_WEIGHT: Final = -math.log(len(SCALES) + 1.0)


def ln_evidence(values: Sequence[float]) -> float:
    """Return ln E of the values: above 0 they lean to the positive side.

    Args:
        values: signed log-ratios in block order.
    """
    parts = [_ln_factors(value) for value in values]
    logs = [sum(column) for column in zip(*parts, strict=True)] or [0.0] * (len(SCALES) + 1)
    return _WEIGHT + _ln_sum_exp(logs)


def ln_evidence_above(values: Sequence[float], bound: float) -> float:
    """Return ln E of (value - bound): evidence that the values lie above the bound."""
    return ln_evidence([value - bound for value in values])


def ln_evidence_below(values: Sequence[float], bound: float) -> float:
    """Return ln E of (bound - value): evidence that the values lie below the bound."""
    return ln_evidence([bound - value for value in values])


def is_shown(values: Sequence[float], level: float) -> bool:
    """Return whether ln E of the values reaches a level; told at once where it can't.

    No factor of a value above 0 is larger than 2, and no other is above 1.
    """
    most = sum(value > 0.0 for value in values) * _LN2
    return most >= level and ln_evidence(values) >= level


def trimmed_mean(values: Sequence[float]) -> float:
    """Return the 20 % trimmed mean of at least one value."""
    dropped = len(values) // TRIMMED_PART
    kept = sorted(values)[dropped : len(values) - dropped]
    return math.fsum(kept) / len(kept)


def standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of the trimmed mean (winsorised), None below two values."""
    count = len(values)
    if count < 2:  # noqa: PLR2004 - one value has no spread
        return None
    dropped = count // TRIMMED_PART
    ordered = sorted(values)
    low, high = ordered[dropped], ordered[count - 1 - dropped]
    pulled = [min(max(value, low), high) for value in ordered]
    mean = math.fsum(pulled) / count
    variance = math.fsum((value - mean) ** 2 for value in pulled) / (count - 1)
    return math.sqrt(variance) / (KEPT_SHARE * math.sqrt(count))


def lower_bound(values: Sequence[float]) -> float | None:
    """Return the largest m that the values exceed with E >= 40, None where no m does."""
    if ln_evidence_above(values, -BOUND_RANGE) < BOUND_EVIDENCE:
        return None
    shown, open_ = -BOUND_RANGE, BOUND_RANGE
    while open_ - shown > BOUND_STEP:
        middle = (shown + open_) / 2.0
        if ln_evidence_above(values, middle) >= BOUND_EVIDENCE:
            shown = middle
        else:
            open_ = middle
    return shown


def upper_bound(values: Sequence[float]) -> float | None:
    """Return the smallest m that exceeds the values with E >= 40, None where no m does."""
    mirrored = lower_bound([-value for value in values])
    return None if mirrored is None else -mirrored


def is_lower_bound(values: Sequence[float], told: float | None, margin: float) -> bool:
    """Return whether `lower_bound` of the values is what was told, within a margin.

    E only falls as m grows, so that two looks tell what the search for it would.
    """
    if told is None:
        return not _is_above(values, margin - BOUND_RANGE)
    if abs(told) > BOUND_RANGE:
        return False
    return _is_above(values, told - margin) and not _is_above(values, told + BOUND_STEP + margin)


def _is_above(values: Sequence[float], bound: float) -> bool:
    """Return whether the values are shown to lie above a bound within the range of bounds."""
    return bound < BOUND_RANGE and is_shown([value - bound for value in values], BOUND_EVIDENCE)


@lru_cache(maxsize=KEPT_VALUES)
def _ln_factors(value: float) -> tuple[float, ...]:
    """Return the logs of a value's factors, one for each part of the mixture.

    ln(1 + tanh z) is ln 2 - ln(1 + e^(-2z)), and for z below 0 also + 2z, since tanh itself
    rounds to -1 from z = -19 on. Each scale is twice the one before it, so that its e^(-2z) is
    the square: one exponential serves all.
    """
    size = abs(value)
    small = math.exp(-2.0 * SCALES[0] * size)
    lost = 0.0 if value >= 0.0 else 2.0 * size
    logs = []
    for scale in SCALES:
        logs.append(_LN2 - lost * scale - (math.log1p(small) if small > _NOTHING else 0.0))
        small *= small
    logs.append(math.log1p(SIGN_STAKE * _sign(value)))
    return tuple(logs)


def _sign(value: float) -> float:
    return float((value > 0.0) - (value < 0.0))


def _ln_sum_exp(logs: Sequence[float]) -> float:
    largest = max(logs)
    return largest + math.log(math.fsum(math.exp(log - largest) for log in logs))
