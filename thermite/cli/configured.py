"""Defaults of options that a person may set elsewhere: variable, project file, own file."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from thermite.control.configuration import Set, configured


def set_elsewhere(name: str) -> Set | None:
    """Return what is set for a key beside its flag, None when nothing is.

    Raises:
        UsageError: a configuration file can't be used.
    """
    try:
        here = Path.cwd()
    except FileNotFoundError:  # the working folder is gone, and no project with it
        here = Path("/")
    return configured(name, os.environ, here)


def default_of(name: str) -> Callable[[], str | None]:
    """Return what says an option's default when it is asked for, as click wants it.

    The variable is read there too, so that no such option needs an `envvar`.
    """

    def default() -> str | None:
        found = set_elsewhere(name)
        return None if found is None else found.value

    return default


def needed(ctx: click.Context, param: click.Parameter, value: Any) -> Any:  # noqa: ANN401 - click's
    """Refuse an option that is set nowhere; `required` would not look at a default that is called.

    Raises:
        click.MissingParameter: it is set nowhere.
    """
    if value is None and not ctx.resilient_parsing:
        raise click.MissingParameter(ctx=ctx, param=param)
    return value
