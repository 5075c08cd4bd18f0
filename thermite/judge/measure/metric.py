"""One metric's value of one run: work by time, time, or a number of the check.

The judge works every value out itself. A value that can't be is the candidate's fault
when the check or the run made it, and the kit's when its own parameter is no number.
Source: the reference page "Kit manifest", Metrics; kit requirements K-050 to K-058.
"""

import json
import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from thermite.errors import InfrastructureError
from thermite.judge.measure.printed import (
    NOTHING,
    as_float,
    as_json,
    is_number,
    shortest_decimal,
)
from thermite.schema.rule import MetricRule
from thermite.schema.strict import Strict

KEPT_WORKS: Final = 1024
"""Works that are kept as numbers: each cell's is asked for in each of its runs."""


class Missing(Strict):
    """The check printed no number above zero for a metric; got: as JSON text, or `nothing`."""

    field: str
    got: str


def value(
    name: str, rule: MetricRule, cell: str, t_ns: int, fields: Mapping[str, object]
) -> float | Missing:
    """Return a metric's value of one run; what the driver thinks of it is `problem`.

    Args:
        name: the metric's, for messages.
        cell: the measured cell; a rate reads its parameter.
        t_ns: the run's time on the judge's clock, ns.
        fields: what the check printed, numbers as such or as decimal text.

    Raises:
        InfrastructureError: the kit's work parameter is no number above zero, or the
            time is zero; never the candidate's fault.
    """
    seconds = t_ns / 1e9
    match rule.kind:
        case "rate":
            return _rate(name, rule.work.get(cell), seconds)
        case "time":
            return seconds
        case "check":
            return _checked(str(rule.field), fields)


def problem(name: str, found: float) -> str | None:
    """Return why a value can't be believed or compared, None when it can (K-054, K-057, K-058)."""
    if not math.isfinite(found):
        return f"{name} is not finite"
    return None if found > 0.0 else f"{name} is {shortest_decimal(found)}, not above zero"


def _rate(name: str, work: str | None, seconds: float) -> float:
    amount = None if work is None else _work(work)
    if amount is None or not amount > 0.0 or not seconds > 0.0:
        shown = NOTHING if work is None else work
        text = f"kit metric {name}: bad work {shown} or time {shortest_decimal(seconds)}"
        raise InfrastructureError(text)
    return amount / seconds


@lru_cache(maxsize=KEPT_WORKS)
def _work(text: str) -> float | None:
    """Return a cell's work from its JSON text, None when it is no number."""
    return _number(json.loads(text))


def _checked(field: str, fields: Mapping[str, object]) -> float | Missing:
    if field not in fields:
        return Missing(field=field, got=NOTHING)
    found = fields[field]
    amount = _number(found)
    if amount is None or not amount > 0.0:
        return Missing(field=field, got=as_json(found))
    return amount


def _number(found: object) -> float | None:
    if not is_number(found):
        return None
    return as_float(str(found))
