"""Show a campaign until it ends: drawn over itself on a terminal, line by line elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from thermite.cli.follow import Follower
from thermite.cli.live_view import drawn
from thermite.cli.output import Output
from thermite.report import live


@contextmanager
def watching(output: Output, follower: Follower) -> Iterator[Callable[[], bool]]:
    """Give a function that shows what is new and returns whether the campaign has ended."""
    if not output.is_live:
        yield lambda: _lines(output, follower)
        return
    from rich.live import Live  # noqa: PLC0415 - help must not pay for rich

    with Live(console=output.console(), refresh_per_second=8, transient=True) as view:

        def show() -> bool:
            over = False
            for row in follower.new():
                over = over or live.is_over(row.event, "ended")
            view.update(drawn(follower.state))
            return over

        yield show


def _lines(output: Output, follower: Follower) -> bool:
    over = False
    for row in follower.new():
        line = live.line(follower.state, row.event)
        if line is not None:
            output.progress(f"  {line}")
        over = over or live.is_over(row.event, "ended")
    return over
