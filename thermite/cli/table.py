"""Verdict rows as a table for a person: wide on a terminal, plain in a pipe."""

from collections.abc import Sequence
from typing import Final

from thermite.cli.output import Output, visible
from thermite.report.campaign import Row, percent, short, span

STYLES: Final = {
    "promoted": "bold green",
    "goals_met": "bold green",
    "not_better": "yellow",
    "not_confirmed": "yellow",
}
"""Colours of verdicts; what counts against a candidate is red."""


def print_rows(output: Output, rows: Sequence[Row]) -> None:
    """Print one row for each attempt on stdout; nothing with `--json`."""
    lines = [_cells(row) for row in rows]
    widths = [max((len(line[i]) for line in lines), default=0) for i in range(4)]
    for row, line in zip(rows, lines, strict=True):
        padded = [cell.ljust(width) for cell, width in zip(line, widths, strict=False)]
        text = "  ".join([*padded, line[4]])
        output.styled(text[: output.width], STYLES.get(row.verdict, "red"))


def _cells(row: Row) -> tuple[str, ...]:
    why = short(row.reasons) or row.words
    if row.marks:
        why = f"{why} ({', '.join(row.marks)})"
    cells = (row.name, row.verdict, row.goals or percent(row.gain), span(row.interval), why)
    return tuple(visible(cell) for cell in cells)
