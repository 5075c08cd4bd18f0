"""A command for a lazy group to import."""

import click


@click.command()
def command() -> None:
    click.echo("one")
