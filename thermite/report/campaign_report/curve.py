"""Drawings of a campaign as inline SVG: no script, no font and no address.

Every mark has a shape or a word beside its colour, and a title for whoever cannot see it.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Final

from thermite.report.campaign import percent, span
from thermite.report.campaign_report.history import History, Point, Times

_WIDTH: Final = 720.0
_HEIGHT: Final = 260.0
_LEFT: Final = 64.0
_RIGHT: Final = 16.0
_TOP: Final = 16.0
_BOTTOM: Final = 54.0
_CROSSES: Final = 12.0
"""How far below the scale the crosses lie: what was not measured has no place on it."""
_LEAST_SPAN: Final = 0.02
"""Least height of a scale: a campaign in which nothing moved is drawn as a flat line."""
_DASHES: Final = ("none", "6 3", "2 2", "8 3 2 3")
_TICKS: Final = 8
"""Steps of a scale, about: with fewer, a loss of 30 % beside a gain of 200 % drew one of 100 %."""
_MOST_NUMBERS: Final = 12
_NEARLY: Final = 0.999999
"""A step that misses a round number by a rounding error alone takes it."""


class Scale:
    """Where values lie on the paper, between round numbers; no range is ever empty."""

    def __init__(self, across: Sequence[float], up: Sequence[float], least: float) -> None:
        self.first, self.last = min(across), max(*across, min(across) + 1)
        low, high = min(up), max(up)
        self.step = _round_step(max(high - low, least) / _TICKS)
        self.low = math.floor(low / self.step) * self.step
        self.high = max(math.ceil(high / self.step), round(self.low / self.step) + 1) * self.step

    def x(self, value: float) -> float:
        """Return the distance from the left, in the drawing's units."""
        share = (value - self.first) / (self.last - self.first)
        return round(_LEFT + share * (_WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        """Return the distance from the top."""
        share = (self.high - min(max(value, self.low), self.high)) / (self.high - self.low)
        return round(_TOP + share * (_HEIGHT - _TOP - _BOTTOM), 1)

    def levels(self) -> list[float]:
        """Return the round values at which a line goes across."""
        count = round((self.high - self.low) / self.step)
        return [self.low + self.step * at for at in range(count + 1)]

    def numbers(self, attempts: int) -> range:
        """Return which of so many attempts get their number below."""
        most = max(1, math.ceil((self.last - self.first) / _MOST_NUMBERS))
        return range(max(1, math.ceil(self.first)), attempts + 1, most)


def _round_step(wanted: float) -> float:
    """Return the next of 1, 2, 5 times a power of ten."""
    power: float = 10.0 ** math.floor(math.log10(wanted))
    return next(one * power for one in (1, 2, 5, 10) if one * power >= wanted * _NEARLY)


def champion_curve(told: History) -> str:
    """Return the champion's gain over the start, with each attempt's own gain and interval."""
    if not told.points:
        return ""
    ends = [end for one in told.points for end in (one.interval or ()) if end is not None]
    gains = [one.gain for one in told.points if one.gain is not None]
    final = [end for end in (told.gain, *(told.interval or ())) if end is not None]
    totals = [one.total for one in told.points]
    numbers = [one.attempt for one in told.points]
    scale = Scale(
        [0, *numbers, max(numbers) + 1], [0.0, *ends, *gains, *totals, *final], _LEAST_SPAN
    )
    parts = [
        _frame(scale, lambda gain: f"{100 * gain:+g} %", numbers[-1]),
        _steps(told.points, scale),
    ]
    parts += [_attempt(one, scale) for one in told.points]
    if told.gain is not None:
        words = f"measured again at the end: {percent(told.gain)} {span(told.interval)}"
        parts.append(_bar(max(numbers) + 1, told.gain, told.interval, scale, ("anchor", words)))
    return _svg(f"The champion's gain over the start: {told.headline}", parts)


def times_plot(told: History) -> str:
    """Return how long the champion ran beside each attempt, a line for each cell."""
    if not told.champion_times:
        return ""
    numbers = [one.attempt for one in told.champion_times]
    values = [one.ms for one in told.champion_times]
    scale = Scale(numbers, [0.0, *values], 1.0)
    parts = [_frame(scale, lambda ms: f"{ms:g} ms", max(numbers))]
    parts += [
        _line(cell, times, scale, _DASHES[at % len(_DASHES)])
        for at, (cell, times) in enumerate(_by_cell(told.champion_times).items())
    ]
    return _svg("Median time of the champion's runs beside each attempt", parts)


def _by_cell(times: Iterable[Times]) -> dict[str, list[Times]]:
    found: dict[str, list[Times]] = defaultdict(list)
    for one in times:
        found[one.cell].append(one)
    return found


def _svg(title: str, parts: Iterable[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" xmlns="http://www.w3.org/2000/svg">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def _frame(scale: Scale, words: Callable[[float], str], attempts: int) -> str:
    lines = []
    for value in scale.levels():
        y = scale.y(value)
        lines.append(
            f'<line class="grid" x1="{_LEFT:g}" x2="{_WIDTH - _RIGHT:g}" y1="{y}" y2="{y}"/>'
            f'<text x="{_LEFT - 6:g}" y="{y + 4}" text-anchor="end">{escape(words(value))}</text>'
        )
    lines += [
        f'<text x="{scale.x(number)}" y="{_HEIGHT - 24:g}" text-anchor="middle">{number}</text>'
        for number in scale.numbers(attempts)
    ]
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    lines.append(f'<text x="{middle:g}" y="{_HEIGHT - 8:g}" text-anchor="middle">attempt</text>')
    return "".join(lines)


def _steps(points: Sequence[Point], scale: Scale) -> str:
    path = [f"M{scale.x(0)} {scale.y(0.0)}"]
    path += [f"H{scale.x(one.attempt)}V{scale.y(one.total)}" for one in points]
    path.append(f"H{scale.x(points[-1].attempt + 1)}")
    return f'<path class="champion" d="{"".join(path)}"/>'


def _attempt(one: Point, scale: Scale) -> str:
    if one.gain is None:
        x, y = scale.x(one.attempt), scale.y(scale.low) + _CROSSES
        cross = f"M{x - 3} {y - 3}L{x + 3} {y + 3}M{x - 3} {y + 3}L{x + 3} {y - 3}"
        words = escape(f"attempt {one.attempt}, {one.name}: {one.verdict}")
        return f'<path class="none" d="{cross}"><title>{words}</title></path>'
    kind = "promoted" if one.verdict == "promoted" else "other"
    measured = f"{percent(one.gain)} {span(one.interval)}"
    words = f"attempt {one.attempt}, {one.name}: {one.verdict} {measured}"
    return _bar(one.attempt, one.gain, one.interval, scale, (kind, words))


def _bar(
    number: float,
    gain: float,
    interval: tuple[float | None, float | None] | None,
    scale: Scale,
    said: tuple[str, str],
) -> str:
    kind, words = said
    x, y = scale.x(number), scale.y(gain)
    low, high = interval or (None, None)
    ends = [scale.y(end) for end in (low, high) if end is not None] or [y]
    mark = f'<circle cx="{x}" cy="{y}" r="4"/>'
    if kind == "other":
        mark = f'<rect x="{x - 3}" y="{y - 3}" width="6" height="6"/>'
    line = f'<line x1="{x}" x2="{x}" y1="{min(*ends, y)}" y2="{max(*ends, y)}"/>'
    return f'<g class="{kind}"><title>{escape(words.strip())}</title>{line}{mark}</g>'


def _line(cell: str, times: Sequence[Times], scale: Scale, dashes: str) -> str:
    points = " ".join(f"{scale.x(one.attempt)},{scale.y(one.ms)}" for one in times)
    begin = times[0]
    return (
        f'<polyline class="times" stroke-dasharray="{dashes}" points="{points}">'
        f"<title>{escape(cell)}</title></polyline>"
        f'<text x="{scale.x(begin.attempt) + 4}" y="{scale.y(begin.ms) - 8}">'
        f"{escape(cell)}</text>"
    )
