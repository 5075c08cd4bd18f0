"""All commands of the command line, as a user would find them."""

import importlib
from collections.abc import Iterator

import click

from thermite.cli.commands import COMMANDS


def walk(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield the path of a command and of all below it, and whether each is a group."""
    yield path, isinstance(command, click.Group)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None, (path, name)
            yield from walk(inner, (*path, name))


ALL = [
    found
    for name, entry in COMMANDS.items()
    for found in walk(importlib.import_module(entry.module).command, tuple(name.split()))
]
LEAVES = [path for path, is_group in ALL if not is_group]
