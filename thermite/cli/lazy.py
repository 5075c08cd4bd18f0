"""A group of commands whose help comes from a table."""

import difflib
import importlib
from collections.abc import Mapping
from typing import Any, cast

import click

from thermite.cli.commands import Subcommand


class LazyGroup(click.Group):
    """A group that imports only the chosen command, and none for its help.

    Args:
        table: name to module, as in `commands`; each module holds one `command`.
        options: what click.Group takes.
    """

    def __init__(self, name: str, *, table: Mapping[str, Subcommand], **options: Any) -> None:  # noqa: ANN401 - click's own
        super().__init__(name, **options)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names, in the table's order."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - likewise
        """Import and return one command."""
        if cmd_name not in self.table:
            return None
        return cast("click.Command", importlib.import_module(self.table[cmd_name].module).command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that was typed.

        Raises:
            click.UsageError: there is none; the text names those that look like it.
        """
        if " ".join(args[:2]) in self.table:
            args = [" ".join(args[:2]), *args[2:]]
        if args and args[0] not in self.table and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], self.table, n=2)
            guess = f": did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"no such command {args[0]!r}{guess}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - likewise
        """Write the table without importing a single command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.about) for name, entry in self.table.items()])
