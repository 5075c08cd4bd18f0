"""`thermite`: finds the subcommand, runs it, and turns whatever ends it into an exit code."""

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Final, NoReturn

import click

from thermite import __version__
from thermite.cli.commands import COMMANDS, Subcommand
from thermite.cli.exits import CommandEnds, Exit, exit_of
from thermite.cli.lazy import LazyGroup
from thermite.cli.output import Output, open_streams
from thermite.errors import ThermiteError

MOST_USAGE: Final = 1000
"""Most characters of a usage error: it quotes what was typed, however long that is."""
SETTINGS: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def run(argv: Sequence[str], table: Mapping[str, Subcommand] = COMMANDS) -> Exit:
    """Run one command line and return how it ended.

    Bugs come through as they are: a traceback is what a bug should look like.
    """
    out, err = open_streams()
    output = Output(as_json="--json" in argv, out=out, err=err)
    try:
        return _run(argv, table, output)
    except BrokenPipeError:
        _swallow_what_is_left()
        return Exit.FAILED


def main() -> NoReturn:
    """Be the console script."""
    code = run(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _swallow_what_is_left()
        code = Exit.FAILED
    except AttributeError:  # stdout is closed, so nothing waits in it
        pass
    sys.exit(code)


def _run(argv: Sequence[str], table: Mapping[str, Subcommand], output: Output) -> Exit:
    try:
        returned = _root(table).main(list(argv), prog_name="thermite", standalone_mode=False)
    except (click.exceptions.Abort, KeyboardInterrupt):
        output.error("interrupted", Exit.INTERRUPTED)
        return Exit.INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return Exit.USAGE
    except click.ClickException as error:
        output.error(_in_our_words(error), Exit.USAGE)
        return Exit.USAGE
    except (CommandEnds, ThermiteError) as error:
        code = exit_of(error)
        if str(error):
            output.error(str(error), code)
        return code
    except OSError as error:
        if error.errno == errno.EPIPE:
            raise
        output.error(_where(error), Exit.FAILED)
        return Exit.FAILED
    # click hands an exit code back when a callback called ctx.exit(), e.g. for --help.
    return Exit(returned) if isinstance(returned, int) else Exit.OK


def _root(table: Mapping[str, Subcommand]) -> LazyGroup:
    return LazyGroup(
        "thermite",
        table=table,
        help="Judge optimised code: signed orders in, audited verdicts out.",
        epilog="Example: thermite demo (all of it at work, no GPU and no API key needed)",
        context_settings=dict(SETTINGS),
        params=[
            click.Option(
                ["--version"],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                callback=_print_version,
                help="Show the version and exit.",
            )
        ],
    )


def _in_our_words(error: click.ClickException) -> str:
    message = " ".join(error.format_message().split()).rstrip(".")
    if len(message) > MOST_USAGE:
        message = f"{message[:MOST_USAGE]}…"
    text = message[:1].lower() + message[1:]
    if isinstance(error, click.UsageError) and error.ctx is not None:
        text += f"{'' if text.endswith('?') else ':'} see {error.ctx.command_path} --help"
    return text


def _where(error: OSError) -> str:
    what = os.strerror(error.errno).lower() if error.errno else str(error)
    names = [repr(str(name)) for name in (error.filename, error.filename2) if name is not None]
    return f"{' to '.join(names)}: {what}" if names else what


def _swallow_what_is_left() -> None:
    """Point stdout at nothing, so that the interpreter's last flush is quiet."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.close(nothing)


def _print_version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    if value and not ctx.resilient_parsing:
        click.echo(f"thermite {__version__}")
        ctx.exit()
