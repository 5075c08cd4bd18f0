"""`thermite ledger`: look at a ledger, carry it away; only `accept-loss` writes to one."""

import csv
import io
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

import click

from thermite.audit.fold import state_at
from thermite.cli.arguments import PATH, Whole
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.ledger_file import ledger_at
from thermite.cli.output import Output, with_output
from thermite.cli.question import agreed
from thermite.ledger.backup import back_up
from thermite.ledger.replay import checked, newest
from thermite.report import ledger as report

FOLLOW_S: Final = 0.5
"""How long `tail --follow` waits before it looks again, s: at once, for a person."""

_LEDGER = click.argument("ledger", type=PATH)


@click.group("ledger", epilog="Example: thermite ledger tail thermite-demo/rig")
def command() -> None:
    """Look at a ledger, and carry it away. LEDGER is the file or the rig's folder."""


@command.command(epilog="Example: thermite ledger tail thermite-demo/rig -n 20 --follow")
@_LEDGER
@click.option("-n", "count", type=Whole(0), default=20, help="How many; 20.")
@click.option("--follow", is_flag=True, help="Go on with what is appended, until interrupted.")
@with_output
def tail(output: Output, *, ledger: Path, count: int, follow: bool) -> None:
    """Print the newest events, one line each."""
    path = ledger_at(ledger)
    after = max(0, newest(path) - count)
    while True:
        for row in checked(path, after):
            after = row.seq
            if output.as_json:
                output.item(report.event_document(row.seq, row.hash, row.body))
            else:
                output.result(report.tail_line(row.seq, row.type, row.body))
        if not follow:
            return
        time.sleep(FOLLOW_S)


@command.command(epilog="Example: thermite ledger export thermite-demo/rig --format csv -o all.csv")
@_LEDGER
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv"]),
    default="jsonl",
    help="JSON lines with each exact body, or CSV with the data as JSON.",
)
@click.option("-o", "target", type=PATH, help="A new file, not stdout.")
@with_output
def export(output: Output, *, ledger: Path, form: str, target: Path | None) -> None:
    """Write all events as JSON lines or CSV."""
    path = ledger_at(ledger)
    count = 0
    with _opened(target) as stream:
        if form == "csv":
            stream.write(_csv(list(report.CSV_COLUMNS)))
        for row in checked(path):
            count = row.seq
            if form == "csv":
                stream.write(_csv(report.csv_row(row.seq, row.type, row.hash, row.body)))
            else:
                stream.write(f"{report.json_line(row.seq, row.hash, row.body)}\n")
    if target is not None:
        output.document({"events": count, "file": str(target)})
        output.result(f"{count} events in {target}")


@command.command(epilog="Example: thermite ledger replay thermite-demo/rig --until 40")
@_LEDGER
@click.option("--until", type=Whole(1), help="The last event; else all of them.")
@with_output
def replay(output: Output, *, ledger: Path, until: int | None) -> None:
    """Print the state that the events mean, as JSON."""
    state = state_at(ledger_at(ledger), until)
    output.document(report.state_document(state))
    output.result(report.state_text(state))


@command.command(epilog="Example: thermite ledger backup thermite-demo/rig /mnt/stick/ledger.db")
@_LEDGER
@click.argument("target", type=PATH)
@with_output
def backup(output: Output, *, ledger: Path, target: Path) -> None:
    """Copy a ledger, also one that is written to, and check the copy."""
    count = back_up(ledger_at(ledger), target)
    output.document({"events": count, "file": str(target)})
    output.result(f"{count} events in {target}, every hash checked")


@command.command(epilog="Example: thermite ledger views thermite-demo/rig -o views.db")
@_LEDGER
@click.option("-o", "target", type=PATH, help="Else views.db beside it.")
@with_output
def views(output: Output, *, ledger: Path, target: Path | None) -> None:
    """Make or renew views.db: campaigns, attempts, verdicts and runs as tables for SQL."""
    from thermite.ledger.views import TABLES, renew  # noqa: PLC0415 - help needs no sqlite_utils

    path = ledger_at(ledger)
    made = target or path.with_name("views.db")
    count = renew(path, made)
    output.document({"events": count, "file": str(made), "tables": list(TABLES)})
    output.result(f"{count} events in {made}: {', '.join(TABLES)}")


@command.command("accept-loss", epilog="Example: thermite ledger accept-loss /var/lib/thermite")
@click.argument("state", type=PATH)
@click.option("--yes", is_flag=True, help="Do not ask.")
@with_output
def accept_loss(output: Output, *, state: Path, yes: bool) -> None:
    """Go on although events are lost; on the rig, while it is stopped. STATE is its folder.

    For a rig that refuses to write, since a receipt names an event that the ledger no longer
    has, or that takes no assignments, since a sender's checkpoint did not fit. Look for a
    backup first: what is recorded here shows in every later audit.
    """
    from thermite.harness import by_hand  # noqa: PLC0415 - the other commands need no harness

    if not agreed(f"record in {state} that events are lost?", yes=yes):
        raise CommandEnds(Exit.WRONG_STATE, "nothing was recorded")
    gap = by_hand.accept_loss(state)
    output.document({"from": gap.from_, "to": gap.to})
    what = f"events {gap.from_} to {gap.to} are lost"
    if gap.to < gap.from_:
        what = "a sender's checkpoint did not fit, and no event is known to be lost"
    output.result(f"recorded ledger_gap: {what}; the rig may be served")


@contextmanager
def _opened(target: Path | None) -> Iterator[TextIO]:
    """Give the new file, or stdout; what is left of a file after an error is removed."""
    if target is None:
        yield sys.stdout
        return
    try:
        stream = target.open("x", encoding="utf-8", newline="")
    except FileExistsError:
        text = f"there is a file {target} already: name a new one"
        raise CommandEnds(Exit.FAILED, text) from None
    done = False
    try:
        with stream:
            yield stream
        done = True
    finally:
        if not done:
            target.unlink(missing_ok=True)


def _csv(values: list[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(values)
    return line.getvalue()
