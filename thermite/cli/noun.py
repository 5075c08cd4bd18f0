"""Groups of commands about one noun: bare, they list."""

from collections.abc import Mapping

import click

from thermite.cli.commands import Subcommand
from thermite.cli.lazy import LazyGroup


class NounGroup(click.Group):
    """A click group that runs its command `list` when no other is named.

    `thermite key`, `thermite key --json` and `thermite key list` are the same.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `list` before the options of a bare noun."""
        asks_for_help = any(arg in ctx.help_option_names for arg in args)
        if not asks_for_help and (not args or args[0].startswith("-")):
            args = ["list", *args]
        return super().parse_args(ctx, args)


class LazyNounGroup(NounGroup, LazyGroup):
    """A noun group that imports only the chosen command."""

    def __init__(self, name: str, *, table: Mapping[str, Subcommand], about: str) -> None:
        super().__init__(name, table=table, help=about, epilog=f"Example: thermite {name} list")
