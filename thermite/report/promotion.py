"""A checked promotion file as text for people and as one JSON object for programs.

Source: ledger and signing, 3.14: what `thermite verify` prints.
"""

from typing import Any

import msgspec

from thermite.schema.promotion import Summary

LIMITS = (
    "not shown by this file: that the rig told the truth about its clock, and how many attempts"
    " failed before this one (that takes the ledger)"
)
"""The last line of every check."""


def lines(summary: Summary) -> list[str]:
    """Return what a promotion claims, line by line."""
    low, high = (f"{100 * end:+.2f} %" if end is not None else "?" for end in summary.interval)
    kit = f"{summary.kit.repo} at {summary.kit.commit[:12]}" if summary.kit else "none"
    counted = f"{summary.blocks.screen} + {summary.blocks.confirm}"
    return [
        f"candidate {summary.candidate.commit}, tree {summary.candidate.tree}",
        f"champion  {summary.champion.commit}, tree {summary.champion.tree}",
        f"project {summary.project.repo}, kit {kit}, contract {summary.contract_sha256[:12]}",
        f"{summary.direction} {summary.metric}: {100 * summary.gain:+.2f} %, from {low} to {high}",
        f"attempt {summary.attempt} (k {summary.k}), {counted} blocks, lnE {summary.lnE:.2f}",
        f"cells {', '.join(summary.cells)}; held out {', '.join(summary.held_out_cells) or 'none'}",
        f"isolation {summary.isolation}, selftest {summary.grade or 'none'}",
    ]


def document(checked: msgspec.Struct) -> dict[str, Any]:
    """Return a check as one JSON object."""
    return dict(msgspec.to_builtins(checked))
