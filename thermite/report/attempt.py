"""One attempt, whole: what was proposed, what was measured, and how to judge it again elsewhere."""

import shlex
from typing import Any

import msgspec

from thermite.campaign.state import Assignment, Attempt
from thermite.report.campaign import percent, row, span
from thermite.schema.event import Block, CellValues, Decision


class Measured:
    """What the events of one attempt's tries hold beyond the state."""

    def __init__(self) -> None:
        self.blocks = 0
        self.decision: Decision | None = None

    def take(self, data: object) -> None:
        """Take in one payload of the attempt."""
        if isinstance(data, Block) and data.dropped is None:
            self.blocks += 1
        elif isinstance(data, Decision):
            self.decision = data


def document(assignment: Assignment, attempt: Attempt, found: Measured) -> dict[str, Any]:
    """Return an attempt as plain values."""
    shown = row(attempt.started.attempt, attempt)
    return {
        "assignment": assignment.id,
        **msgspec.to_builtins(shown),
        "lane": attempt.lane,
        "commit": attempt.commit,
        "base": attempt.started.base,
        "files": list(attempt.paths),
        "tries": attempt.tries,
        "blocks": found.blocks,
        "decision": msgspec.to_builtins(found.decision),
        "cells": msgspec.to_builtins(_cells(attempt)),
        "notes": [] if attempt.verdict is None else list(attempt.verdict.notes),
    }


def lines(told: dict[str, Any]) -> list[str]:
    """Return the document for a person, one line each."""
    interval = told["interval"]
    gain = f"{percent(told['gain'])} {span(interval and tuple(interval))}".rstrip()
    found = [
        f"attempt {told['attempt']} ({told['name']}) of campaign {told['assignment']}",
        f"{told['verdict']}: {told['words']}" + ("" if told["gain"] is None else f", {gain}"),
        *(f"  {line}" for reason in told["reasons"] for line in reason.splitlines()),
        f"commit {told['commit'] or 'none was made'} on {told['base']}",
        f"files: {', '.join(told['files']) or 'none'}",
        f"{told['blocks']} blocks counted, {told['tries']} tries",
    ]
    if told["decision"] is not None:
        last = told["decision"]
        found.append(f"last decision: {last['stage']} {last['action']}, ln E {last['lnE']:.2f}")
    for cell, metrics in told["cells"].items():
        for name, values in metrics.items():
            shown = [_number(values[arm]) for arm in ("candidate", "champion", "ratio")]
            found.append(f"{cell} {name}: {shown[0]}, champion {shown[1]}, ratio {shown[2]}")
    found += [f"mark: {mark}" for mark in told["marks"]]
    return found + [f"note: {note}" for note in told["notes"]]


def repro(repos: str, assignment: Assignment, attempt: Attempt) -> list[str]:
    """Return the commands that fetch kit and candidate from a rig and judge the pair again.

    repos: the folder of the rig's repositories. There are none where no candidate was made,
    where the campaign has no kit that could judge it, or where `thermite judge` did: it keeps
    no commit for long, and who asked has the folders.
    """
    kit, contract = assignment.kit, assignment.contract
    if attempt.commit is None or kit is None or assignment.nonce is not None:
        return []
    name = f"attempt-{attempt.started.attempt}"
    ref = f"refs/attempts/{assignment.id}/{attempt.started.attempt}"
    judge = ["thermite", "judge", "project", "--kit", "kit"]
    objective = contract.objective
    if objective is not None:
        judge += ["--champion", attempt.started.base, "--metric", objective.primary.metric]
        judge += ["--direction", objective.primary.direction]
        if objective.min_effect is not None:
            judge += ["--min-effect", str(objective.min_effect)]
    cells = [*contract.cells, *contract.held_out_cells]
    if cells:
        judge += ["--cells", ",".join(cells)]
    kit_at = [f"{repos}/kit-{kit.repo}.git", f"refs/thermite/kept/{kit.commit}"]
    project_at = [f"{repos}/project-{assignment.project.repo}.git", f"{ref}:refs/heads/{name}"]
    commands = [
        ["git", "init", "-q", "kit"],
        ["git", "-C", "kit", "fetch", "-q", *kit_at],
        ["git", "-C", "kit", "checkout", "-q", "FETCH_HEAD"],
        ["git", "init", "-q", "project"],
        ["git", "-C", "project", "fetch", "-q", *project_at],
        ["git", "-C", "project", "checkout", "-q", name],
        judge,
    ]
    return [shlex.join(command) for command in commands]


def _cells(attempt: Attempt) -> dict[str, dict[str, CellValues]]:
    return {} if attempt.verdict is None else attempt.verdict.cells


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}"
