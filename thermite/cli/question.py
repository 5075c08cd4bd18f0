"""Yes or no, from whoever typed a command that can't be undone."""

import sys

import click

from thermite.errors import UsageError


def agreed(question: str, *, yes: bool) -> bool:
    """Return whether a person agrees; yes: whether it was said on the command line.

    Raises:
        UsageError: nobody can be asked.
        click.Abort: somebody was, and went away instead.
    """
    if yes:
        return True
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin is not None and sys.stdin.isatty():
            raise
        raise UsageError("there is no terminal to ask at: agree with --yes") from None
