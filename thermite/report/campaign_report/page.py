"""The history of a campaign as one HTML file: no script, nothing is fetched.

What this page calls a case, the kit calls a cell. Source: kit requirements, K-043.
"""

from collections.abc import Iterator
from html import escape
from typing import Final

from thermite.report.campaign_report.curve import champion_curve, times_plot
from thermite.report.campaign_report.history import History
from thermite.report.campaign_report.text import (
    Table,
    attempt_table,
    case_table,
    change_table,
    facts,
)

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load for this page: nothing, whatever a name in it holds."""
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1b1b; --paper: #fff; --faint: #d5d5d5; --best: #0a6; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8e8e8; --paper: #161616; --faint: #3a3a3a; --best: #3d9; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--faint);
  vertical-align: top; white-space: nowrap; }
td:last-child { white-space: normal; overflow-wrap: anywhere; }
p.fact { margin: .2rem 0; }
svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: var(--ink); }
.grid { stroke: var(--faint); } .champion { fill: none; stroke: var(--best); stroke-width: 2; }
.promoted, .anchor { stroke: var(--best); fill: var(--best); stroke-width: 1.5; }
.other { stroke: var(--ink); fill: var(--paper); } .none { stroke: var(--ink); fill: none; }
.anchor circle { fill: var(--paper); }
.times { fill: none; stroke: var(--ink); stroke-width: 1.5; }
"""


def page(told: History) -> str:
    """Return the whole page."""
    body = "\n".join(_body(told))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(told.name)}</title><style>{_STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def _body(told: History) -> Iterator[str]:
    yield f"<h1>{escape(told.name)}</h1>"
    headline, *rest = facts(told)
    yield f"<p><strong>{escape(headline)}</strong></p>"
    yield from (f'<p class="fact">{escape(line)}</p>' for line in rest)
    if told.goals:
        yield "<h2>Goals</h2>"
        yield f"<pre>{escape(chr(10).join(told.goals))}</pre>"
    if any(point.gain is not None for point in told.points):
        yield "<h2>The champion's way</h2>"
        yield champion_curve(told)
        yield (
            "<p>The line is the champion's gain over the start, the promoted gains multiplied up;"
            " each mark is an attempt against the champion of its time (a disc: promoted, a square:"
            " not), with its interval where enough blocks were counted for one; a cross below the"
            " scale was never measured; the ring at the end is the champion measured again against"
            " the start.</p>"
        )
    if told.changes:
        yield "<h2>What each promotion changed</h2>"
        yield _table(change_table(told.changes))
    if told.cases:
        yield "<h2>Cases</h2>"
        yield _table(case_table(told.cases, "case"))
    if told.champion_times:
        yield "<h2>The champion's times</h2>"
        yield times_plot(told)
    if told.attempts:
        yield "<h2>Attempts</h2>"
        yield _table(attempt_table(told))


def _table(table: Table) -> str:
    head, *rows = table
    lines = [f"<tr>{''.join(f'<th>{escape(cell)}</th>' for cell in head)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows]
    return f"<table>{''.join(lines)}</table>"
