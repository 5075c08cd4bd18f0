"""`thermite campaign`: signed orders about a campaign that runs, and reports of what it came to."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from thermite.cli.answered import accepted
from thermite.cli.arguments import TEXT, Limit, Text, Whole
from thermite.cli.campaign_report import compare, report
from thermite.cli.control_side import (
    rig_option,
    signing_key,
    timeout_option,
    with_home,
    with_key,
)
from thermite.cli.noun import NounGroup
from thermite.cli.output import Output, with_output
from thermite.control.campaigns import chosen, give_order, sent_campaigns
from thermite.control.home import ControlHome
from thermite.control.rigs import known_rig, known_rigs
from thermite.errors import UnreachableError, UsageError
from thermite.schema.command import (
    MOST_NOTE,
    AboutAssignment,
    CommandType,
    ExtendBody,
    ResolveBody,
    SteerBody,
    StopBody,
    VoteBody,
)
from thermite.schema.strict import Strict


@dataclass(frozen=True)
class Desk:
    """Who gives an order, and to which rig."""

    output: Output
    home: ControlHome
    rig: str
    key: Path | None
    passphrase_file: Path | None
    timeout_s: float

    def give(self, kind: CommandType, wanted: str, body: Callable[[str], Strict]) -> None:
        """Give one order and end with the rig's answer.

        Args:
            wanted: the assignment as the person named it.
            body: makes the order's body from the assignment's whole id.

        Raises:
            CommandEnds: refused, or no answer in time.
        """
        rig = known_rig(self.home, self.rig)
        assignment = chosen(self.home, rig, wanted)
        signer = signing_key(self.home, self.key, self.passphrase_file)
        output = self.output
        order, file = give_order(self.home, rig, kind, body(assignment), key=signer)
        told: dict[str, Any] = {"command": order.digest, "type": kind, "assignment": assignment}
        found = accepted(
            output, self.home, rig, order, file=file, told=told, timeout_s=self.timeout_s
        )
        output.document(told)
        output.result(f"{kind} accepted: event {found.event_seq}")


def with_desk(act: Callable[..., None]) -> Callable[..., None]:
    """Give a command a desk, and the options that say which."""

    @rig_option
    @timeout_option(120.0)
    @with_key
    @with_home
    @with_output
    @functools.wraps(act)
    def wrapped(
        output: Output,
        *,
        home: ControlHome,
        rig_name: str,
        key: Path | None,
        passphrase_file: Path | None,
        timeout_s: float,
        **own: object,
    ) -> None:
        act(Desk(output, home, rig_name, key, passphrase_file, timeout_s), **own)

    return wrapped


@click.group("campaign", cls=NounGroup, epilog="Example: thermite campaign list --rig bench")
def command() -> None:
    """Orders about a campaign, and reports; ASSIGNMENT is its id, or the first digits of it."""


@command.command("list", epilog="Example: thermite campaign list --json")
@click.option(
    "--rig", "rig_name", type=TEXT, help="Only this rig's; else every rig's that control knows."
)
@with_home
@with_output
def list_campaigns(output: Output, *, home: ControlHome, rig_name: str | None) -> None:
    """List the campaigns that control has sent, with the rig's newest word on each."""
    rigs = {rig_name: known_rig(home, rig_name)} if rig_name else known_rigs(home)
    rows = []
    for name, rig in rigs.items():
        try:
            found = sent_campaigns(home, rig)
        except UnreachableError as error:
            output.warn(f"rig {name}: {error}")
            continue
        for one in found:
            rows.append({"rig": name, **msgspec.to_builtins(one)})
            output.result(f"{name}  {one.assignment}  sent {one.at}  {one.outcome}")
    output.document({"campaigns": rows})
    if not rows:
        output.result("no campaign was sent yet")


@command.command("pause", epilog="Example: thermite campaign pause 4f2a --rig bench")
@click.argument("assignment", type=TEXT)
@with_desk
def pause(desk: Desk, *, assignment: str) -> None:
    """Let the running attempts end, and start no new one."""
    desk.give("pause_campaign", assignment, lambda one: AboutAssignment(assignment=one))


@command.command("resume", epilog="Example: thermite campaign resume 4f2a --rig bench")
@click.argument("assignment", type=TEXT)
@with_desk
def resume(desk: Desk, *, assignment: str) -> None:
    """Start attempts again after a pause."""
    desk.give("resume_campaign", assignment, lambda one: AboutAssignment(assignment=one))


@command.command("stop", epilog="Example: thermite campaign stop 4f2a --rig bench --now")
@click.argument("assignment", type=TEXT)
@click.option("--now", is_flag=True, help="Cancel what is being judged; else it ends first.")
@with_desk
def stop(desk: Desk, *, assignment: str, now: bool) -> None:
    """End a campaign after its running attempts, or now."""
    desk.give("stop_campaign", assignment, lambda one: StopBody(assignment=one, now=now))


@command.command("steer", epilog='Example: thermite campaign steer 4f2a "try tiles" --rig bench')
@click.argument("assignment", type=TEXT)
@click.argument("text", type=Text(MOST_NOTE))
@click.option("--lane", type=Whole(0), help="Only this lane; else all.")
@with_desk
def steer(desk: Desk, *, assignment: str, text: str, lane: int | None) -> None:
    """Give the workers a note, at most 2,000 characters, from their next attempt on."""
    desk.give(
        "steer_campaign", assignment, lambda one: SteerBody(assignment=one, text=text, lane=lane)
    )


@command.command("resolve", epilog="Example: thermite campaign resolve 4f2a 7 release --rig bench")
@click.argument("assignment", type=TEXT)
@click.argument("attempt", type=Whole(1))
@click.argument("action", type=click.Choice(["release", "reject"]))
@with_desk
def resolve(
    desk: Desk, *, assignment: str, attempt: int, action: Literal["release", "reject"]
) -> None:
    """Release or reject a promotion that is held."""
    desk.give(
        "resolve_hold",
        assignment,
        lambda one: ResolveBody(assignment=one, attempt=attempt, action=action),
    )


@command.command("extend", epilog="Example: thermite campaign extend 4f2a --rig bench attempts=80")
@click.argument("assignment", type=TEXT)
@click.argument("limits", type=Limit(), nargs=-1, required=True, metavar="LIMIT=NUMBER...")
@with_desk
def extend(desk: Desk, *, assignment: str, limits: tuple[tuple[str, float], ...]) -> None:
    """Raise limits of the budget: attempts, wall_s, judge_s, tokens, usd, candidate_mib."""
    budget = dict(limits)
    if len(budget) < len(limits):
        raise UsageError("a limit is there twice: give each once")
    desk.give("extend_budget", assignment, lambda one: ExtendBody(assignment=one, budget=budget))


@command.command(
    "review", epilog='Example: thermite campaign review 4f2a 3 clear met "reads well" --rig bench'
)
@click.argument("assignment", type=TEXT)
@click.argument("attempt", type=Whole(1))
@click.argument("goal", type=TEXT)
@click.argument("vote", type=click.Choice(["met", "unmet"]))
@click.argument("reason", type=Text(MOST_NOTE), required=False)
@with_desk
def review(
    desk: Desk,
    *,
    assignment: str,
    attempt: int,
    goal: str,
    vote: Literal["met", "unmet"],
    reason: str | None,
) -> None:
    """Vote on a review goal of an attempt that waits for it: one key has one vote."""
    desk.give(
        "vote_review",
        assignment,
        lambda one: VoteBody(
            assignment=one, attempt=attempt, goal=goal, vote=vote, reason=reason or ""
        ),
    )


command.add_command(report)
command.add_command(compare)
