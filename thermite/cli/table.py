"""Verdict rows as a table for a person: wide on a terminal, plain in a pipe."""

from collections.abc import Sequence
from typing import Final

from thermite.cli.output import Output, visible
from thermite.report.campaign import Row, percent, short, span

STYLES: Final = {"promoted": "bold green", "not_better": "yellow", "not_confirmed": "yellow"}
"""Colours of verdicts; what counts against a candidate is red."""


def print_rows(output: Output, rows: Sequence[Row]) -> None:
    """Print one row for each attempt on stdout; nothing with `--json`."""
    from rich.table import Table  # noqa: PLC0415 - help must not pay for rich

    table = Table(box=None, pad_edge=False)
    for column in ("candidate", "verdict", "gain", "interval", "why"):
        table.add_column(column, overflow="fold")
    for row in rows:
        style = STYLES.get(row.verdict, "red")
        why = short(row.reasons) or row.words
        if row.marks:
            why = f"{why} ({', '.join(row.marks)})"
        cells = (row.name, row.verdict, percent(row.gain), span(row.interval), why)
        table.add_row(*(visible(cell) for cell in cells), style=style)
    output.console(on_stdout=True).print(table)
