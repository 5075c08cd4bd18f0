"""All commands of the command line, as a user would find them."""

import importlib
from collections.abc import Iterator

import click

from thermite.cli.commands import COMMANDS


def walk(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield the path of a command and of all below it, each with the command."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, (path, name)
            yield from walk(inner, (*path, name))


BY_PATH = {
    path: found
    for name, entry in COMMANDS.items()
    for path, found in walk(importlib.import_module(entry.module).command, tuple(name.split()))
}
ALL = [(path, isinstance(found, click.Group)) for path, found in BY_PATH.items()]
LEAVES = [path for path, is_group in ALL if not is_group]
