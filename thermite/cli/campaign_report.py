"""`thermite campaign report` and `compare`: a campaign to hand on, and two beside each other."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import click
import msgspec

from thermite.cli.arguments import PATH, PLACE, TEXT
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.follow import Follower
from thermite.cli.ledger_file import ledger_at
from thermite.cli.output import Output, visible, with_output
from thermite.cli.places import existing_ledger, ledger_options
from thermite.errors import UsageError
from thermite.report.campaign_report.history import Gathered, History, history
from thermite.report.campaign_report.page import page
from thermite.report.campaign_report.text import columns, markdown, plain
from thermite.report.campaign_report.versus import versus

FORMS: Final[dict[str, Callable[[History], str]]] = {
    "text": plain,
    "markdown": markdown,
    "html": page,
}
"""Each form of a report, and what writes it."""
SUFFIXES: Final = {
    ".html": "html",
    ".htm": "html",
    ".md": "markdown",
    ".markdown": "markdown",
    ".txt": "text",
    "": "text",
}
"""The form that a file's name asks for by its ending; one without an ending gets text."""


@click.command(
    "report", epilog="Example: thermite campaign report --state thermite-demo/rig -o walk.html"
)
@click.argument("assignment", type=TEXT, required=False)
@ledger_options
@click.option("--form", type=click.Choice(list(FORMS)), help="Else as FILE's name ends, or text.")
@click.option("-o", "target", type=PATH, help="A new file; else stdout.")
@with_output
def report(
    output: Output,
    *,
    assignment: str | None,
    state: Path | None,
    ledger: Path | None,
    form: str | None,
    target: Path | None,
) -> None:
    """Write what one campaign came to: the champion's way, its promotions, cells and times.

    ASSIGNMENT is its id, or the first digits of it; else the newest. The report names held-out
    cells: it is for people, not for agents.
    """
    chosen = form or _form_of(target)
    told = history_in(existing_ledger(state, ledger), assignment or "")
    output.document(msgspec.to_builtins(told))
    text = visible(FORMS[chosen](told))
    if target is None:
        output.result(text.rstrip("\n"))
        return
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise CommandEnds(Exit.WRONG_STATE, f"{target} is there already: name a new file") from None
    except OSError as error:
        raise CommandEnds(Exit.FAILED, f"{target}: {error.strerror}") from None
    output.result(f"{told.headline}\n{target}: {chosen}, {len(text.encode()) // 1024 + 1} KiB")


@click.command(
    "compare", epilog="Example: thermite campaign compare rig-a/ledger.db rig-b/ledger.db"
)
@click.argument("one", type=PLACE)
@click.argument("other", type=PLACE)
@ledger_options
@with_output
def compare(
    output: Output, *, one: str, other: str, state: Path | None, ledger: Path | None
) -> None:
    """Put two campaigns beside each other and say whether their gains differ.

    ONE and OTHER are ids of campaigns (or first digits) in the ledger of --state or --ledger;
    or each is a ledger or a rig's folder, whose newest campaign is meant, or FILE#ID.
    """
    left, right = (_named(text, state, ledger) for text in (one, other))
    found = versus(left, right)
    for warning in found.warnings:
        output.warn(warning)
    output.document(
        {
            "one": msgspec.to_builtins(left),
            "other": msgspec.to_builtins(right),
            "said": found.said,
        }
    )
    for line in columns(found.table):
        output.result(line)
    output.result(found.said)


def _form_of(target: Path | None) -> str:
    suffix = target.suffix.lower() if target else ""
    if suffix not in SUFFIXES:
        there = ", ".join(one for one in SUFFIXES if one)
        raise UsageError(
            f"no report is written as {suffix[:20]}: end FILE's name with {there}, or say --form"
        )
    return SUFFIXES[suffix]


def history_in(ledger: Path, wanted: str) -> History:
    """Return the history of the newest campaign whose id begins so.

    Raises:
        CommandEnds: there is none.
    """
    follower = Follower(ledger)
    gathered: dict[str, Gathered] = {}
    for row in follower.new():
        if row.event is not None and row.event.assignment is not None:
            gathered.setdefault(row.event.assignment, Gathered()).take(row.event)
    chosen = follower.campaign(wanted)
    return history(follower.state, chosen, gathered[chosen.id])


def _named(text: str, state: Path | None, ledger: Path | None) -> History:
    place, mark, wanted = text.partition("#")
    if mark or Path(text).exists():
        return history_in(ledger_at(Path(place)), wanted)
    return history_in(existing_ledger(state, ledger), text)
