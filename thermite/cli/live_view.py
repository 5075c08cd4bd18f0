"""A campaign drawn over itself while it runs: attempts so far, and the evidence as it grows."""

import math
from typing import TYPE_CHECKING, Final

from thermite.campaign.state import Assignment, Attempt, State
from thermite.cli.output import visible
from thermite.report import campaign as report
from thermite.schema.event import Block, Decision, JudgeStarted

if TYPE_CHECKING:
    from rich.console import RenderableType

BAR: Final = 24
"""Width of the bar of evidence, characters."""


def drawn(state: State) -> "RenderableType":
    """Return the newest campaign as a table and a line of evidence."""
    from rich.console import Group  # noqa: PLC0415 - help must not pay for rich
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    if not state.assignments:
        return Text("waiting for the order …")
    assignment = list(state.assignments.values())[-1]
    table = Table(box=None, pad_edge=False)
    for column in ("candidate", "verdict", "gain"):
        table.add_column(column)
    for row in report.rows(assignment):
        table.add_row(visible(row.name), row.verdict, report.percent(row.gain))
    champion = f"champion {assignment.champion[:12]}"
    return Group(table, Text(evidence_line(assignment)), Text(champion, style="bold green"))


def evidence_line(assignment: Assignment) -> str:
    """Return how far the judge is with what it measures now."""
    running = [a for a in assignment.attempts.values() if a.status in ("building", "judging")]
    if running:
        return _attempt_line(running[-1])
    if assignment.re_anchors and assignment.re_anchors[-1].decision is None:
        blocks = sum(isinstance(f, Block) for f in assignment.re_anchors[-1].facts)
        return f"champion against the start: {blocks} blocks"
    return report.progress(assignment)


def _attempt_line(attempt: Attempt) -> str:
    name = visible(attempt.started.proposal or str(attempt.started.attempt))
    last = next((f for f in reversed(attempt.facts) if isinstance(f, Decision)), None)
    if last is None:
        return f"{name}: {attempt.status}, warming up"
    needed = _needed(attempt, last.stage)
    share = max(0.0, min(1.0, last.lnE / needed))
    bar = "█" * round(BAR * share) + "·" * (BAR - round(BAR * share))
    evidence = f"ln E {last.lnE:.1f} of {needed:.1f}  {report.percent(math.expm1(last.T))}"
    return f"{name}: {last.stage} block {last.n}  {bar}  {evidence}"


def _needed(attempt: Attempt, stage: str) -> float:
    started = next((f for f in attempt.facts if isinstance(f, JudgeStarted)), None)
    if started is None:
        return math.inf
    screen = float(started.params.get("judging", {}).get("screen_alpha", 0.02))
    return math.log(1 / screen) if stage == "screen" else math.log(screen / started.alpha_k)
