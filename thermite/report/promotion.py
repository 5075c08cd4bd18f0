"""A checked promotion file as text for people and as one JSON object for programs.

Source: ledger and signing, 3.14: what `thermite verify` prints.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import msgspec

from thermite.schema.judging import Interval
from thermite.schema.promotion import Summary
from thermite.schema.repro import Repro

Proof: TypeAlias = Literal["proven", "not proven"]

LIMITS = (
    "not shown by this file: that the rig told the truth about its clock, and how many attempts"
    " failed before this one (that takes the ledger)"
)
"""The last line of every check."""


def lines(summary: Summary) -> list[str]:
    """Return what a promotion claims, line by line."""
    kit = f"{summary.kit.repo} at {summary.kit.commit[:12]}" if summary.kit else "none"
    counted = f"{summary.blocks.screen} + {summary.blocks.confirm}"
    return [
        f"candidate {summary.candidate.commit}, tree {summary.candidate.tree}",
        f"champion  {summary.champion.commit}, tree {summary.champion.tree}",
        f"project {summary.project.repo}, kit {kit}, contract {summary.contract_sha256[:12]}",
        f"{summary.direction} {summary.metric}: {_gain(summary.gain, summary.interval)}",
        f"attempt {summary.attempt} (k {summary.k}), {counted} blocks, lnE {summary.lnE:.2f}",
        f"cells {', '.join(summary.cells)}; held out {', '.join(summary.held_out_cells) or 'none'}",
        f"isolation {summary.isolation}, selftest {summary.grade or 'none'}",
    ]


def parts(*, command: bool, patch: Proof | None) -> dict[str, str | None]:
    """Return what is shown about each part of the file that no signature covers.

    command: whether one is carried; patch: how far it was proven, None without one.
    """
    return {
        "command": "payload proven, signatures not proven" if command else None,
        "patch": patch,
        "made": "not proven",
    }


def part_lines(shown: Mapping[str, str | None]) -> list[str]:
    """Return the same for people; a part that is not carried has no line."""
    said = {
        "command": "command: its payload is the one that was accepted; its signatures are not"
        " proven here",
        "patch": "patch: it turns the champion's tree into the candidate's"
        if shown["patch"] == "proven"
        else "patch: not proven, compare it with --project",
        "made": "made: not proven, a note by whoever wrote the file",
    }
    return [said[name] for name, proof in shown.items() if proof is not None]


def repro_lines(summary: Summary, here: Repro) -> list[str]:
    """Return both intervals side by side, and what they can't be compared in."""
    if here.problem is not None:
        return [f"not judged here: {here.problem}"]
    lines = [
        f"there: {_gain(summary.gain, summary.interval)}, isolation {summary.isolation}",
        f"here:  {_gain(here.gain, here.interval)}, isolation {here.isolation}: {here.verdict}",
    ]
    if here.kit is not None and (summary.kit is None or summary.kit.commit != here.kit.commit):
        there = "none" if summary.kit is None else summary.kit.commit[:12]
        lines.append(f"another kit judged here: {here.kit.commit[:12]}, and there {there}")
    return lines


def _gain(gain: float | None, interval: Interval | None) -> str:
    if gain is None:
        return "no gain was measured"
    low, high = (
        f"{100 * end:+.2f} %" if end is not None else "?" for end in interval or (None,) * 2
    )
    return f"{100 * gain:+.2f} %, from {low} to {high}"


def document(checked: msgspec.Struct) -> dict[str, Any]:
    """Return a check as one JSON object."""
    return dict(msgspec.to_builtins(checked))
