"""Two campaigns beside each other, and whether they can be compared at all."""

from collections.abc import Iterator
from typing import Final

from thermite.report.campaign import percent, span
from thermite.report.campaign_report.history import History
from thermite.report.campaign_report.text import Table
from thermite.schema.strict import Strict

_ID: Final = 12
"""Digits of a campaign's id that are shown."""


class Versus(Strict):
    """A comparison: table with its head, warnings, and what may be said of the gains."""

    table: Table
    warnings: list[str]
    said: str


def versus(left: History, right: History) -> Versus:
    """Put two campaigns beside each other."""
    kinds = sorted(left.verdicts.keys() | right.verdicts.keys())
    rows = [
        ["", left.name, right.name],
        ["campaign", left.assignment[:_ID], right.assignment[:_ID]],
        ["gain over the start", _gain(left), _gain(right)],
        ["promotions", str(len(left.changes)), str(len(right.changes))],
        ["attempts", str(len(left.attempts)), str(len(right.attempts))],
        ["blocks", str(left.blocks), str(right.blocks)],
        ["seconds of runs", f"{left.judge_s:.0f}", f"{right.judge_s:.0f}"],
    ]
    rows += [[kind, *(str(one.verdicts.get(kind, 0)) for one in (left, right))] for kind in kinds]
    return Versus(table=rows, warnings=list(_warnings(left, right)), said=_said(left, right))


def _gain(told: History) -> str:
    return f"{percent(told.gain)} {span(told.interval)}".strip()


def _warnings(left: History, right: History) -> Iterator[str]:
    for what, ours, theirs in (
        ("projects and starts", left.project, right.project),
        ("kits", left.kit, right.kit),
        ("targets", left.target, right.target),
        ("kinds", left.kind, right.kind),
        ("smallest gains worth a promotion", left.min_effect, right.min_effect),
        ("isolation", left.isolation, right.isolation),
    ):
        if ours != theirs:
            yield f"different {what}: {ours} and {theirs}"


def _said(left: History, right: History) -> str:
    """Return what the two intervals show: each holds by itself, so only a gap between them says."""
    if (left.project, left.kit, left.target) != (right.project, right.kit, right.target):
        return "their gains cannot be compared: another start, kit or target"
    if left.gain is None or right.gain is None or not left.interval or not right.interval:
        return "at least one champion was not measured again: nothing can be said of the gains"
    (low, high), (lower, higher) = left.interval, right.interval
    if low is not None and higher is not None and low > higher:
        return f"{left.name} gained more: the intervals do not meet"
    if lower is not None and high is not None and lower > high:
        return f"{right.name} gained more: the intervals do not meet"
    return "no difference was shown: the intervals meet"
