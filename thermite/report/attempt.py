"""One attempt, whole: what was proposed, what was measured, and how to judge it again elsewhere."""

import json
import math
import shlex
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from thermite.campaign.state import Assignment, Attempt
from thermite.report.campaign import percent, row, span
from thermite.schema.event import AgentFinished, Block, CellValues, Decision

_POWERS: Final = 6
"""From a million on, odds are told as a power of ten."""
_GAIN_AND_RATIO: Final = (
    "these are medians of all runs; the gain compares runs side by side, block by block, and leaves"
    " out the extremes, so it is near the ratio and not the same"
)


class Measured:
    """What the events of one attempt's tries hold beyond the state."""

    def __init__(self) -> None:
        self.blocks = 0
        self.decision: Decision | None = None
        self.worker: AgentFinished | None = None

    def take(self, data: object) -> None:
        """Take in one payload of the attempt."""
        if isinstance(data, Block) and data.dropped is None:
            self.blocks += 1
        elif isinstance(data, Decision):
            self.decision = data
        elif isinstance(data, AgentFinished):
            self.worker = data


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
        "worker": _worker(found.worker),
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
        f"{counted(told['blocks'], 'block')} counted, {counted(told['tries'], 'try', 'tries')}",
    ]
    if told["worker"] is not None:
        found.append(_of_the_worker(told["worker"]))
    if told["decision"] is not None:
        last = told["decision"]
        found.append(f"last decision: {last['stage']} {last['action']}, {evidence(last['lnE'])}")
    for cell, metrics in told["cells"].items():
        for name, values in metrics.items():
            shown = [_number(values[arm]) for arm in ("candidate", "champion", "ratio")]
            found.append(f"{cell} {name}: {shown[0]}, champion {shown[1]}, ratio {shown[2]}")
    if told["cells"] and told["gain"] is not None:
        found.append(_GAIN_AND_RATIO)
    found += [f"mark: {mark}" for mark in told["marks"]]
    return found + [f"note: {note}" for note in told["notes"]]


def _worker(finished: AgentFinished | None) -> dict[str, Any] | None:
    """Return how the worker's work ended; transcript: its SHA-256, and its name in `blobs/`.

    partial: it is what had been said when the rig was killed.
    """
    if finished is None:
        return None
    return {
        "status": finished.status,
        "reason": finished.stop_reason,
        "transcript": finished.transcript,
        "partial": finished.partial,
    }


def _of_the_worker(told: dict[str, Any]) -> str:
    why = "" if told["reason"] is None else f" ({told['reason']})"
    kept = told["transcript"]
    whole = "what it had said by then" if told["partial"] else "its transcript"
    left = "no transcript was left" if kept is None else f"{whole} is blobs/{kept}"
    return f"worker: {told['status']}{why}, {left}"


def counted(number: int, one: str, several: str | None = None) -> str:
    """Return a number with its noun."""
    return f"{number} {one if number == 1 else several or f'{one}s'}"


def evidence(ln_e: float) -> str:
    """Return evidence for a gain as its logarithm and as odds against luck.

    Source: judging, 2.1: of candidates without a gain, at most one in E ever shows an E so high.
    """
    if ln_e < math.log(2):
        return f"ln E {ln_e:.2f}: no evidence of a gain"
    power = math.floor(ln_e / math.log(10))
    odds = f"{math.floor(math.exp(ln_e)):,}" if power < _POWERS else f"10^{power}"
    return f"ln E {ln_e:.2f}: luck alone gets so far at most once in {odds}"


def repro(
    repos: str, program: Sequence[str], assignment: Assignment, attempt: Attempt
) -> list[str]:
    """Return a script that fetches kit and candidate from a rig and judges the pair again.

    It works in a new folder below the current one, and asks what the campaign's contract asks.
    There is none where no candidate was made, where the campaign has no kit that could judge it,
    or where `thermite judge` did: it keeps no commit for long, and who asked has the folders.

    Args:
        repos: absolute path of the folder of the rig's repositories; links resolved, as git
            compares it.
        program: the argv of thermite, as it works from any folder.
    """
    kit, project, number = assignment.kit, assignment.project, attempt.started.attempt
    if attempt.commit is None or kit is None or assignment.nonce is not None:
        return []
    kit_repo, project_repo = f"{repos}/kit-{kit.repo}.git", f"{repos}/project-{project.repo}.git"
    # A ledger that somebody handed on may hold any text there, and a line more would be a command.
    campaign = "".join(filter(str.isalnum, assignment.id))
    ref = f"refs/attempts/{assignment.id}/{number}:refs/heads/attempt-{number}"
    return [
        "#!/bin/sh",
        *_introduction(assignment, f"attempt {number} of campaign {campaign}"),
        "set -eu",
        f'folder=$(mktemp -d "$PWD/attempt-{number}-XXXXXX")',
        'cd "$folder"',
        "# Git asks who owns a repository, and a rig's belong to a user of its own: these two are",
        "# wanted. It asks again in a child that hears of settings by a file only.",
        'export GIT_CONFIG_GLOBAL="$folder/gitconfig"',
        *(
            shlex.join(["git", "config", "--global", "--add", "safe.directory", repo])
            for repo in (kit_repo, project_repo)
        ),
        "git init -q kit",
        shlex.join(
            ["git", "-C", "kit", "fetch", "-q", kit_repo, f"refs/thermite/kept/{kit.commit}"]
        ),
        "git -C kit checkout -q FETCH_HEAD",
        "git init -q project",
        shlex.join(["git", "-C", "project", "fetch", "-q", project_repo, ref]),
        f"git -C project checkout -q attempt-{number}",
        *_question(program, assignment, attempt),
    ]


def _introduction(assignment: Assignment, which: str) -> list[str]:
    """Return the comment that says what the script shows, and what it does not."""
    if assignment.contract.objective is None:
        return [
            f"# Builds {which} with the same kit, here,",
            "# and runs and checks it once in each cell. It decides no goal: only a campaign does.",
        ]
    return [
        f"# Judges {which} again, here: kit, candidate and",
        "# champion are the same, and so is the contract. It counts as the first attempt, whatever",
        "# it spent there, so its evidence is held to the first one's measure.",
    ]


def _question(program: Sequence[str], assignment: Assignment, attempt: Attempt) -> list[str]:
    contract = assignment.contract
    judge = [*program, "judge", "project", "--kit", "kit"]
    if contract.objective is None:  # its goals are the campaign's: is it valid at all?
        cells = ["--cells", ",".join(contract.cells)] if contract.cells else []
        return [shlex.join([*judge, *cells])]
    told = json.dumps(msgspec.to_builtins(contract))  # one line, and in ASCII
    judge += ["--champion", attempt.started.base, "--contract", "contract.json"]
    return ["cat > contract.json << 'END'", told, "END", shlex.join(judge)]


def _cells(attempt: Attempt) -> dict[str, dict[str, CellValues]]:
    return {} if attempt.verdict is None else attempt.verdict.cells


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.6g}"
