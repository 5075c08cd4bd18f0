"""`thermite watch`: a campaign as it runs, from the rig's ledger."""

import time
from pathlib import Path
from typing import Final

import click

from thermite.campaign.state import State
from thermite.cli.arguments import SECONDS
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.follow import Follower
from thermite.cli.output import Output, with_output
from thermite.cli.places import awaited_ledger, ledger_options
from thermite.ledger.place import is_written
from thermite.report import campaign as report
from thermite.report import live

HEARTBEAT_S: Final = 30.0
"""A line at least so often even when nothing is finished (known faults, U7)."""


@click.command("watch", epilog="Example: thermite watch --state thermite-demo/rig --until ended")
@ledger_options
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
    follower = Follower(awaited_ledger(state, ledger))
    if not follower.ledger.is_file():
        missing = f"there is no ledger at {follower.ledger} yet"
        output.progress(f"{missing}: waiting for thermite rig serve to open it")
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    watch(output, follower, until=until, deadline=deadline)


def watch(
    output: Output,
    follower: Follower,
    *,
    until: str | None,
    deadline: float | None = None,
    every_s: float = HEARTBEAT_S,
) -> None:
    """Print events as they come, until the wanted one; every_s: a line at least so often.

    What an earlier campaign came to is not what is waited for: a campaign that begins after the
    wanted event begins the wait anew, as long as both are in the ledger already.

    Raises:
        CommandEnds: the deadline (monotonic, s) passed first.
    """
    said = last = time.monotonic()
    over = False
    while True:
        for row in follower.new():
            last = time.monotonic()
            output.item({"seq": row.seq, "type": row.type, "data": row.event.data})
            line = live.line(follower.state, row.event)
            if line is not None:
                output.result(line)
                said = time.monotonic()
            over = live.is_over(row.event, until) or (over and not live.begins(row.event))
        if over:
            return
        if deadline is not None and time.monotonic() > deadline:
            raise CommandEnds(Exit.TIMEOUT, f"nothing {until or 'more'} in the time given")
        if time.monotonic() - said > every_s:
            quiet_s = time.monotonic() - last
            served = is_written(follower.ledger)
            output.progress(in_flight(follower.state, quiet_s=quiet_s, served=served))
            said = time.monotonic()
        follower.wait()


def in_flight(state: State, *, quiet_s: float, served: bool | None) -> str:
    """Return what is going on when nothing is finished.

    Args:
        quiet_s: how long there was no event, s; served: whether a rig writes to the ledger.
    """
    running = [a for a in state.assignments.values() if a.status != "ended"]
    now = "; ".join(f"{a.id[:12]} {report.progress(a)}" for a in running)
    if served is False:
        return f"no rig is served from this ledger now; {now or 'no campaign is left to run'}"
    return f"{now or 'no campaign is running'} (no event for {quiet_s:.0f} s)"
