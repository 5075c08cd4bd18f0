"""`thermite watch`: a campaign as it runs, from the rig's ledger."""

import time
from pathlib import Path
from typing import Final

import click

from thermite.campaign.state import State
from thermite.cli.arguments import PATH, SECONDS
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.follow import Follower
from thermite.cli.output import Output, with_output
from thermite.cli.places import ledger_of
from thermite.report import campaign as report
from thermite.report import live

HEARTBEAT_S: Final = 30.0
"""A line at least so often even when nothing is finished (known faults, U7)."""


@click.command("watch", epilog="Example: thermite watch --state thermite-demo/rig --until ended")
@click.option("--state", type=PATH, help="The rig's folder.")
@click.option("--ledger", type=PATH, help="A ledger file.")
@click.option("--until", type=click.Choice(["promoted", "ended"]), help="When to stop watching.")
@click.option("--timeout", "timeout_s", type=SECONDS, help="Seconds to watch at most.")
@with_output
def command(
    output: Output,
    state: Path | None,
    ledger: Path | None,
    until: str | None,
    timeout_s: float | None,
) -> None:
    """Show what happens on a rig, line by line; with --json, one event a line."""
    follower = Follower(ledger_of(state, ledger))
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    watch(output, follower, until=until, deadline=deadline)


def watch(
    output: Output, follower: Follower, *, until: str | None, deadline: float | None = None
) -> None:
    """Print events as they come, until the wanted one.

    Raises:
        CommandEnds: the deadline (monotonic, s) passed first.
    """
    said = time.monotonic()
    while True:
        for row in follower.new():
            output.item({"seq": row.seq, "type": row.type, "data": row.event.data})
            line = live.line(follower.state, row.event)
            if line is not None:
                output.result(line)
                said = time.monotonic()
            if live.is_over(row.event, until):
                return
        if deadline is not None and time.monotonic() > deadline:
            raise CommandEnds(Exit.TIMEOUT, f"nothing {until or 'more'} in the time given")
        if time.monotonic() - said > HEARTBEAT_S:
            output.progress(in_flight(follower.state))
            said = time.monotonic()
        follower.wait()


def in_flight(state: State) -> str:
    """Return what is going on when nothing is finished."""
    running = [a for a in state.assignments.values() if a.status != "ended"]
    if not running:
        return "no campaign is running"
    return "; ".join(f"{a.id[:12]} {report.progress(a)}" for a in running)
