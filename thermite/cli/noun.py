"""Groups of commands about one noun: bare, they list."""

import importlib
from collections.abc import Mapping
from typing import cast

import click

from thermite.cli.commands import Subcommand


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


class LazyNounGroup(NounGroup):
    """A noun group whose help comes from a table, and which imports only the chosen command.

    Args:
        table: name to module, as in `commands`; each module holds one `command`.
    """

    def __init__(self, name: str, *, table: Mapping[str, Subcommand], about: str) -> None:
        super().__init__(name, help=about, epilog=f"Example: thermite {name} list")
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names, in the table's order."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        """Import and return one command."""
        if cmd_name not in self.table:
            return None
        return cast("click.Command", importlib.import_module(self.table[cmd_name].module).command)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - likewise
        """Write the table without importing a single command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.about) for name, entry in self.table.items()])
