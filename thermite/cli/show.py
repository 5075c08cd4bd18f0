"""`thermite show`: one attempt, whole, and the commands that judge it again."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Final

import click

from thermite.campaign.state import Assignment, Attempt
from thermite.cli.arguments import TEXT
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.follow import Follower
from thermite.cli.output import Output, with_output
from thermite.cli.places import existing_ledger, ledger_options
from thermite.cli.program import program
from thermite.report import attempt as report
from thermite.schema.event import AgentFinished, Block, Decision

_COMMIT: Final = re.compile(r"[0-9a-f]{7,40}")
"""So many digits of a commit name an attempt, as git shortens them."""
_TOLD: Final = (AgentFinished, Block, Decision)
_SHOWN: Final = 60
"""Characters of what was asked for that a message repeats: a line of a terminal."""


@click.command("show", epilog="Example: thermite show 11 --repro --state thermite-demo/rig")
@click.argument("attempt", type=TEXT)
@ledger_options
@click.option("--assignment", type=TEXT, help="Its id, or first digits of it; else the newest.")
@click.option("--repro", is_flag=True, help="Print a script that judges it again.")
@with_output
def command(
    output: Output,
    *,
    attempt: str,
    state: Path | None,
    ledger: Path | None,
    assignment: str | None,
    repro: bool,
) -> None:
    """Show one attempt: its verdict, what was measured, and how strong the evidence is.

    ATTEMPT is its number, its name or how that begins, or 7 or more digits of its commit.

    With --repro stdout is a script for sh: it fetches kit and candidate from the rig's
    repositories into a new folder below the current one and judges the pair there by the
    campaign's contract. That is one try and no campaign: the evidence of this ledger is
    checked by thermite audit --rejudge.
    """
    path = existing_ledger(state, ledger)
    follower = Follower(path)
    measured: dict[tuple[str | None, int], report.Measured] = defaultdict(report.Measured)
    for row in follower.new():
        if row.event is not None and isinstance(row.event.data, _TOLD):
            of = row.event.assignment, row.event.data.attempt or 0
            measured[of].take(row.event.data)
    campaign = follower.campaign(assignment or "")
    found = named(campaign, attempt, campaigns=len(follower.state.assignments))
    told = report.document(campaign, found, measured[campaign.id, found.started.attempt])
    repos = path.resolve().with_name("repos")
    commands = report.repro(str(repos), program(), campaign, found)
    if repro and not commands:
        raise CommandEnds(
            Exit.FAILED,
            f"attempt {told['attempt']} cannot be judged again from here: it made no candidate, has"
            " no kit, or was thermite judge's, which keeps no commits",
        )
    output.document(told | ({"repro": commands} if repro else {}))
    for line in commands if repro else report.lines(told):
        output.result(line)


def named(campaign: Assignment, wanted: str, *, campaigns: int) -> Attempt:
    """Return the attempt that a number, a name or digits of a commit mean.

    Args:
        campaigns: how many the ledger has, another of which may be meant.

    Raises:
        CommandEnds: there is none, or more than one.
    """
    by_commit = bool(_COMMIT.fullmatch(wanted))
    for number, one in campaign.attempts.items():
        is_its_commit = by_commit and (one.commit or "").startswith(wanted)
        if is_its_commit or wanted in {str(number), one.started.proposal}:
            return one
    begun = [a for a in campaign.attempts.values() if (a.started.proposal or "").startswith(wanted)]
    if len(begun) == 1:
        return begun[0]
    how = "give its number, its name, or 7 or more digits of its commit"
    if campaigns > 1:
        how += ", and --assignment for another campaign than the newest"
    which = f"{'more than one' if begun else 'no'} attempt {wanted[:_SHOWN]!r}"
    said = f"there is {which} in campaign {campaign.id[:12]}: {how}"
    raise CommandEnds(Exit.NOT_FOUND, said)
