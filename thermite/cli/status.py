"""`thermite status`: where the rig's campaigns stand, from its ledger."""

from datetime import UTC, datetime
from pathlib import Path

import click

from thermite.audit.outbox import outbox_problem
from thermite.cli.follow import Follower
from thermite.cli.output import Output, with_output
from thermite.cli.places import existing_ledger, ledger_options
from thermite.ledger.place import is_written
from thermite.ledger.reading import log_bytes, log_problem
from thermite.report import campaign as report


@click.command(
    "status", epilog="Example: thermite status --state /var/lib/thermite", short_help="snapshot"
)
@ledger_options
@with_output
def command(output: Output, state: Path | None, ledger: Path | None) -> None:
    """Show the rig and its campaigns, as the ledger has them now."""
    path = existing_ledger(state, ledger)
    follower = Follower(path)
    as_of = None
    for row in follower.new():
        as_of = row.event.at
    outbox = None
    if state is not None and follower.state.trust_version > 0:  # who takes no orders owes nothing
        outbox = outbox_problem(path, path.with_name("outbox"), datetime.now(UTC))
    told = report.status(
        follower.state,
        wal_bytes=log_bytes(path),
        served=is_written(path),
        as_of=as_of,
        outbox=outbox,
        log=log_problem(path),
    )
    output.document(told)
    for line in report.status_lines(told):
        output.result(line)
