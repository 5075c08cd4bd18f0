"""How much of a run is starting up: never subtracted, always said.

Source: the design page on judging, 3.5.
"""

from collections.abc import Iterable, Sequence
from statistics import median

from thermite.schema.event import Run
from thermite.schema.strict import Strict


def startup_shares(facts: Iterable[Strict], probes: Sequence[int]) -> dict[str, float]:
    """Return for each cell the median probe by the median run, at most 1.

    Args:
        facts: the warm-up's runs and checks.
        probes: times of a program that does nothing, ns, at least one.
    """
    times: dict[str, list[int]] = {}
    for fact in facts:
        if isinstance(fact, Run) and fact.record is not None:
            times.setdefault(fact.cell, []).append(fact.record.t_ns)
    # A run can't be shorter than its own start: where it seems so, that is noise.
    return {cell: min(1.0, median(probes) / max(median(ns), 1)) for cell, ns in times.items()}
