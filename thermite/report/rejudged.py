"""What re-judging a ledger found, for people. PURE."""

from thermite.schema.rejudged import Rejudged


def lines(found: Rejudged) -> list[str]:
    """Return the result line by line; the last one says how it ends."""
    differ = len(found.differences) + found.unlisted
    counts = (
        f"judged again: {found.runs} runs, {found.blocks} blocks, {found.decisions} decisions,"
        f" {found.verdicts} verdicts, {found.goals} goals, {found.coins} coins"
    )
    return [
        counts,
        *(
            f"event {one.seq}, {one.what}"
            + ("" if one.attempt is None else f" of attempt {one.attempt}")
            + f": recorded {one.recorded}, recomputed {one.recomputed}"
            for one in found.differences
        ),
        *(
            f"{one.assignment[:12]} attempt {one.attempt}: {one.recorded}; under the other rule"
            f" {one.otherwise}"
            for one in found.otherwise
        ),
        f"{differ} differences" if differ else "all of it follows from the runs",
    ]
