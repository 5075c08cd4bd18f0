"""`thermite demo`: the whole job at work, by the public commands, each printed before it runs.

It is the shortest manual: keys, a rig, a project and a kit, a signed order, the judge at
work on candidates that are wrong, slow, lucky, cheating and truly faster, and an audit.
"""

import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from thermite.cli.arguments import PATH
from thermite.cli.demo_rig import DemoRig, fresh_folder
from thermite.cli.demo_steps import Steps
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.output import Output, with_output
from thermite.cli.program import near, typed
from thermite.cli.table import print_rows
from thermite.report import campaign as report

MISSED: Final = frozenset({"not_better", "not_confirmed"})
"""What noise may make of a true gain; never the other way round."""


@click.command(
    "demo", epilog="Example: thermite demo, then: thermite verdicts --state thermite-demo/rig"
)
@click.argument("folder", default="thermite-demo", type=PATH)
@with_output
def command(output: Output, folder: Path) -> None:
    """Show everything working, in FOLDER (made; an earlier demo there is replaced)."""
    begun = time.monotonic()
    home = fresh_folder(folder)
    steps = Steps(output, home)
    steps.prepare()
    steps.announce_rig()
    with DemoRig(home, steps.rig_argv(), steps.rig_state) as rig:
        steps.order()
        steps.follow(rig)
    audit = steps.audit()
    told = summary(steps, audit, time.monotonic() - begun)
    show(output, steps, told)
    output.document(told)
    if not told["ok"]:
        raise CommandEnds(Exit.FAILED)


def summary(steps: Steps, audit: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Return the demo's result as plain values; seconds: what it took."""
    assignment, state = steps.assignment, steps.follower.state
    verdicts = {row.name: row.verdict for row in report.rows(assignment)}
    # Warnings stand in the same list, and a live rig's tail is one.
    findings = sum(one["severity"] == "finding" for one in audit.get("findings", []))
    unexpected = steps.unexpected(verdicts)
    is_noisy = state.selftest is not None and state.selftest.grade == "noisy"
    missed = {n: v for n, v in unexpected.items() if is_noisy and v in MISSED}
    unexpected = {name: v for name, v in unexpected.items() if name not in missed}
    ended = assignment.status == "ended"
    return {
        "ok": ended and not findings and not unexpected and bool(verdicts),
        "verdicts": verdicts,
        "unexpected": unexpected,
        "missed": sorted(missed),
        "champion": assignment.champion,
        "gain": assignment.gain,
        "interval": assignment.interval,
        "audit": {"findings": findings},
        "isolation": report.isolation_sentence(state),
        "features": [] if state.isolation is None else state.isolation.features,
        "rig": None if state.selftest is None else state.selftest.grade,
        "ledger": str(steps.ledger),
        "seconds": round(seconds, 1),
    }


def show(output: Output, steps: Steps, told: dict[str, Any]) -> None:
    """Print the report that a person reads at the end."""
    output.result("")
    print_rows(output, report.rows(steps.assignment))
    output.result("")
    output.result(report.headline(steps.assignment))
    output.result(str(told["isolation"]))
    output.result(f"audit: {told['audit']['findings']} findings")
    if told["missed"]:
        output.result(
            f"this machine is noisy (its selftest says so), and {', '.join(told['missed'])} could"
            " not be confirmed: noise costs promotions here, it never makes one; try again when it"
            " is idle"
        )
    for name, verdict in told["unexpected"].items():
        output.result(f"unexpected: {name} was judged {verdict}")
    output.result(f"{told['seconds']} s; worth seeing next:")
    for command, what in worth_seeing(steps):
        output.result(f"  {command}  # {what}")


def worth_seeing(steps: Steps) -> Iterator[tuple[str, str]]:
    """Yield commands that work in the current folder, each with what it shows."""
    thermite = typed()
    rig, control, project, kit = (
        shlex.quote(near(one)) for one in (steps.rig_state, steps.control, steps.project, steps.kit)
    )
    yield f"{thermite} campaign report --state {rig} -o demo.html", "the champion's way, drawn"
    yield f"{thermite} show 10 --state {rig}", "one verdict, whole; --repro: judge it again"
    yield (
        f"{thermite} audit {rig} --against {rig}/outbox --rejudge",
        "each decision, computed again from the runs",
    )
    yield (
        f"{thermite} estimate {project}/contract.toml --kit {kit} --data {control}",
        "what such a campaign costs on this rig",
    )
