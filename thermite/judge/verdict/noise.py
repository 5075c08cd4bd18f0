"""What blocks of one build against itself say of a rig: its noise in figures, and its bias.

Units: D is a log-ratio; both arms were the same program, so every figure is the rig's own.
Source: the design page on judging, 3.7.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import Final

from thermite.judge.verdict.evidence import ln_evidence

QUIET: Final = 0.006
USABLE: Final = 0.02
"""Robust sd of D up to which a rig is graded so (judging, 3.7)."""
NORMAL: Final = 1.4826
"""Median absolute deviation to standard deviation of a normal (hyperfine, outlier_detection)."""
LN_BIASED: Final = math.log(100.0)
"""ln E of D or of -D from which a selftest looks biased (judging, 3.7)."""


def grade(robust: float | None) -> str:
    """Return the grade of a rig by its robust standard deviation of D."""
    if robust is None or robust > USABLE:
        return "noisy"
    return "quiet" if robust <= QUIET else "usable"


def robust_sd(ds: Sequence[float]) -> float | None:
    """Return the standard deviation of D by its median absolute deviation, None if none."""
    if not ds:
        return None
    middle = median(ds)
    return NORMAL * median(abs(d - middle) for d in ds)


def figures(ds: Sequence[float]) -> dict[str, float | None]:
    """Return what a selftest tells of its D: spread, tails, memory, and evidence of bias.

    q95: 95 % of |D| lie at or below; kurtosis: in excess of a normal's; lag_1: correlation of
    neighbours; ln_e: the larger of ln E of D and of -D. None where too few say nothing.
    """
    return {
        "robust_sd": robust_sd(ds),
        "mean": math.fsum(ds) / len(ds) if ds else None,
        "q95": sorted(map(abs, ds))[math.ceil(0.95 * len(ds)) - 1] if ds else None,
        "kurtosis": _kurtosis(ds),
        "lag_1": _lag_1(ds),
        "ln_e": max(ln_evidence(ds), ln_evidence([-d for d in ds])) if ds else None,
    }


def looks_biased(told: dict[str, float | None]) -> bool:
    """Return whether the figures of one selftest show a lean; two running make a rig biased."""
    found = told.get("ln_e")
    return found is not None and found >= LN_BIASED


def _moment(ds: Sequence[float], power: int) -> float:
    mean = math.fsum(ds) / len(ds)
    return math.fsum((d - mean) ** power for d in ds) / len(ds)


def _kurtosis(ds: Sequence[float]) -> float | None:
    spread = _moment(ds, 2) if ds else 0.0
    return _moment(ds, 4) / spread**2 - 3.0 if spread**2 > 0.0 else None


def _lag_1(ds: Sequence[float]) -> float | None:
    spread = _moment(ds, 2) if ds else 0.0
    if spread <= 0.0:
        return None
    mean = math.fsum(ds) / len(ds)
    both = pairwise(ds)
    return math.fsum((a - mean) * (b - mean) for a, b in both) / (len(ds) * spread)
