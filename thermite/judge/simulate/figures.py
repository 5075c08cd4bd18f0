"""What simulated campaigns come to: counts with their bounds, costs, claims."""

import math
from collections.abc import Sequence
from statistics import fmean

from thermite.judge.simulate.campaign import Climbed
from thermite.schema.strict import Strict


class Share(Strict):
    """So many of so many."""

    count: int
    of: int

    @property
    def share(self) -> float:
        """The share itself."""
        return self.count / self.of

    @property
    def at_most(self) -> float:
        """The largest share that so few still fit to, at 95 % on one side (Clopper-Pearson)."""
        if self.count == self.of:
            return 1.0
        low, high = self.share, 1.0
        for _ in range(50):
            middle = (low + high) / 2.0
            if _chance_up_to(self.count, self.of, middle) > 0.05:  # noqa: PLR2004 - 95 %
                low = middle
            else:
                high = middle
        return high


def with_false_promotion(climbed: Sequence[Climbed]) -> Share:
    """Return how many campaigns made a champion of an edit that is no better."""
    return Share(count=sum(one.false_promotions > 0 for one in climbed), of=len(climbed))


def promoted(climbed: Sequence[Climbed]) -> Share:
    """Return how many attempts were promoted: where all have one true gain, the power."""
    outcomes = [out for one in climbed for out in one.outcomes]
    return Share(count=sum(out.promoted for out in outcomes), of=len(outcomes))


def mean_blocks(climbed: Sequence[Climbed]) -> float:
    """Return what an attempt costs on average, in blocks."""
    return fmean(out.blocks for one in climbed for out in one.outcomes)


def claim_bias_pp(climbed: Sequence[Climbed]) -> float | None:
    """Return claimed minus true gain of a promotion, percentage points; None without one."""
    both = [pair for one in climbed for pair in zip(one.edits, one.outcomes, strict=True)]
    biases = [
        100.0 * (math.expm1(out.claim) - math.expm1(edit.gain))
        for edit, out in both
        if out.promoted
    ]
    return fmean(biases) if biases else None


def mean_gains(climbed: Sequence[Climbed]) -> tuple[float, float]:
    """Return the mean claimed and the mean true gain of a campaign, fractions."""
    return fmean(c.claimed_gain for c in climbed), fmean(c.true_gain for c in climbed)


def _chance_up_to(count: int, of: int, share: float) -> float:
    """Return the chance of at most count successes, each with the chance share, in (0, 1)."""
    logs = [
        math.lgamma(of + 1)
        - math.lgamma(i + 1)
        - math.lgamma(of - i + 1)
        + i * math.log(share)
        + (of - i) * math.log1p(-share)
        for i in range(count + 1)
    ]
    largest = max(logs)
    return math.exp(largest) * math.fsum(math.exp(log - largest) for log in logs)
