"""A group of commands about one noun: bare, it lists."""

import click


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
