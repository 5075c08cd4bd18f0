"""The history of a campaign as plain text and as Markdown: the same sections in both."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from thermite.report.campaign import one_line, percent, short, span
from thermite.report.campaign_report.history import Case, Change, History

_GAP: Final = "  "
_MOST_FILES: Final = 20
"""File names of one change that are printed (our figure; `--json` has all)."""
_COMMIT: Final = 12


def plain(told: History) -> str:
    """Return the report for a terminal or a mail."""
    lines: list[str] = []
    for title, table, sentences in _sections(told):
        lines += ["", title, "-" * len(title)] if title else [told.name, "=" * len(told.name)]
        lines += sentences
        lines += columns(table)
    return "\n".join(lines) + "\n"


def markdown(told: History) -> str:
    """Return the report for a wiki or a pull request."""
    lines: list[str] = []
    for title, table, sentences in _sections(told):
        lines += ["", f"## {title}", ""] if title else [f"# {_marked(told.name)}", ""]
        lines += [f"{_marked(sentence)}  " for sentence in sentences]
        if table:
            head, *body = [[_marked(cell) for cell in row] for row in table]
            lines += [_bars(head), _bars("---" for _ in head), *map(_bars, body)]
    return "\n".join(lines) + "\n"


Table = Sequence[Sequence[str]]


def _sections(told: History) -> Iterator[tuple[str, Table, list[str]]]:
    """Yield title, table with its head, and sentences of each section that has something."""
    yield "", [], facts(told)
    if told.goals:
        yield "Goals", [], told.goals
    if told.changes:
        yield "What each promotion changed", change_table(told.changes), []
    if told.cases:
        yield "Cells, champion over start", case_table(told.cases, "cell"), []
    if told.attempts:
        yield "Attempts", attempt_table(told), []


def facts(told: History) -> list[str]:
    """Return the sentences at the top: what was asked, what came of it, how far it holds."""
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(told.verdicts.items()))
    rig = f"selftest: {told.grade or 'not run yet'}"
    if told.sees is not None:
        rig += f"; this rig sees a gain of {percent(told.sees).lstrip('+')} or more"
    state = (
        told.status if told.end_reason is None else f"{told.status}: {one_line(told.end_reason)}"
    )
    effect = ""
    if told.min_effect is not None:
        effect = f"; smallest gain worth a promotion: {100 * told.min_effect:g} %"
    lines = [
        told.headline,
        f"campaign {told.assignment} ({told.kind}), {state}",
        f"project {told.project}",
        f"kit {told.kit}, target {told.target}{effect}" if told.kit else "no kit",
        f"{told.begun or 'not begun'} to {told.ended or 'now'}",
        f"{told.blocks} blocks counted, {told.judge_s:.0f} s of runs",
        f"verdicts: {counts or 'none yet'}",
        told.isolation,
        rig,
    ]
    return lines + told.notes


def change_table(changes: Iterable[Change]) -> Table:
    """Return one row for each promotion, with a head."""
    rows = [["attempt", "name", "commit", "over", "gain", "", "files"]]
    for one in changes:
        names = one.files[:_MOST_FILES]
        more = len(one.files) - len(names)
        files = ", ".join(names) + (f" and {more} more" if more else "")
        rows.append(
            [
                str(one.attempt),
                one.name,
                one.commit[:_COMMIT],
                one.previous[:_COMMIT],
                percent(one.gain),
                span(one.interval),
                files + (f" ({', '.join(one.marks)})" if one.marks else ""),
            ]
        )
    return rows


def case_table(cases: Iterable[Case], word: str) -> Table:
    """Return one row for each cell, with a head; word: what this reader calls a cell."""
    rows = [[word, "start", "champion", "gain", ""]]
    rows += [
        [
            one.cell,
            _milliseconds(one.start_ms),
            _milliseconds(one.champion_ms),
            percent(one.gain),
            "held out" if one.held_out else "",
        ]
        for one in cases
    ]
    return rows


def attempt_table(told: History) -> Table:
    """Return one row for each attempt, with a head."""
    rows = [["attempt", "name", "verdict", "gain", "", "reason"]]
    rows += [
        [
            str(one.attempt),
            one.name,
            one.verdict,
            one.goals or percent(one.gain),
            span(one.interval),
            short(one.reasons) or one.words,
        ]
        for one in told.attempts
    ]
    return rows


def _milliseconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f} ms"


def columns(table: Table) -> list[str]:
    """Return a table's rows with its columns under each other."""
    if not table:
        return []
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    ]


def _bars(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


_MARKS: Final = {ord(mark): f"\\{mark}" for mark in "\\`*_{}[]<>#|~!$&"}
_ADDRESS: Final = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)", re.IGNORECASE)
"""Where a text begins to be an address, or a call for somebody, by itself. Source: GitHub
Flavored Markdown, 6.9 (extended autolinks); there, a backslash does not end an e-mail address."""
_NOTHING: Final = "<!-- -->"


def _marked(text: str) -> str:
    """Return text that Markdown shows as it is: nobody's name becomes a link or a picture."""
    return _ADDRESS.sub(_NOTHING, " ".join(text.split()).translate(_MARKS))
