"""`thermite verdicts`: every attempt, its verdict, its reason and its gain."""

from pathlib import Path

import click

from thermite.cli.arguments import TEXT
from thermite.cli.follow import Follower
from thermite.cli.output import Output, with_output
from thermite.cli.places import existing_ledger, ledger_options
from thermite.cli.table import print_rows
from thermite.report import campaign as report
from thermite.report import goal


@click.command("verdicts", epilog="Example: thermite verdicts --state thermite-demo/rig")
@ledger_options
@click.option("--assignment", type=TEXT, help="Its id, or the first digits of it; else the newest.")
@with_output
def command(
    output: Output, state: Path | None, ledger: Path | None, assignment: str | None
) -> None:
    """Show what the judge said of each attempt."""
    follower = Follower(existing_ledger(state, ledger))
    for _ in follower.new():
        pass
    newest = follower.campaign(assignment or "")
    rows = report.rows(newest)
    output.document({"assignment": newest.id, "attempts": rows, "goals": goal.report(newest)})
    print_rows(output, rows)
    output.result(report.headline(newest))
    for line in goal.lines(newest):
        output.result(line)
