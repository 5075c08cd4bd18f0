"""What the commands of the operator's side have in common: its folder, and passphrases."""

import functools
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NoReturn, TypeVar

import click

from thermite.cli.arguments import PATH, SECONDS, TEXT
from thermite.cli.configured import default_of, needed
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.output import Output
from thermite.command.keyring import SigningKey
from thermite.control.home import ControlHome, control_home
from thermite.control.key_files import AskPassphrase, command_key, read_key
from thermite.control.private_file import read_private
from thermite.errors import UsageError

_Command = TypeVar("_Command", bound=Callable[..., None])

MOST_PASSPHRASE: Final = 4096
"""Most bytes of a passphrase file: a line, whatever the language."""


def with_home(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option `--data`, and control's folder as the argument `home`."""

    @click.option(
        "--data",
        type=PATH,
        default=default_of("data"),
        help="Control's folder; else THERMITE_DATA, else XDG's data folder.",
    )
    @functools.wraps(command)
    def wrapped(*args: object, data: Path | None, **arguments: object) -> None:
        command(*args, home=control_home(data, os.environ), **arguments)

    return wrapped


def with_passphrase(command: _Command) -> _Command:
    """Give a command the option `--passphrase-file`."""
    option = click.option(
        "--passphrase-file",
        type=PATH,
        default=default_of("passphrase_file"),
        help="Holds the key's passphrase; without it you are asked.",
    )
    return option(command)


def with_key(command: _Command) -> _Command:
    """Give a command the options `--key` and `--passphrase-file`."""
    option = click.option(
        "--key",
        type=PATH,
        default=default_of("key"),
        help="Sign with this key; else with the only one.",
    )
    return option(with_passphrase(command))


def rig_option(command: _Command) -> _Command:
    """Give a command the option `--rig`, as the argument `rig_name`."""
    return click.option(
        "--rig",
        "rig_name",
        type=TEXT,
        default=default_of("rig"),
        callback=needed,
        help="A rig that control knows.",
    )(command)


def timeout_option(
    default: float, help_text: str = "The longest wait for the answer."
) -> Callable[[_Command], _Command]:
    """Return what gives a command the option `--timeout-s`; default: s."""
    return click.option(
        "--timeout-s",
        type=SECONDS,
        default=default,
        show_default=True,
        help=help_text,
    )


def signing_key(home: ControlHome, key: Path | None, passphrase_file: Path | None) -> SigningKey:
    """Return the key to sign with.

    Raises:
        UsageError: none or several to choose from, or one that can't be read.
    """
    return read_key(key or command_key(home), asking(passphrase_file))


def asking(passphrase_file: Path | None) -> AskPassphrase:
    """Return what asks for the passphrase of a key: a file, or the person at the terminal."""

    def ask(path: Path) -> bytes:
        if passphrase_file is not None:
            return read_passphrase(passphrase_file)
        _check_terminal(f"{path} has a passphrase")
        return prompt(f"Passphrase of {path}")

    return ask


def new_passphrase(passphrase_file: Path | None) -> bytes:
    """Return the passphrase for a new key.

    Raises:
        UsageError: nobody is there to be asked.
    """
    if passphrase_file is not None:
        return read_passphrase(passphrase_file)
    _check_terminal("a new key gets a passphrase (or none: --no-passphrase)")
    first = prompt("New passphrase")
    if first != prompt("The same again"):
        raise UsageError("the two passphrases differ: start again")
    return first


def read_passphrase(path: Path) -> bytes:
    """Return the passphrase in a private file, without its last line end."""
    raw = read_private(path, most_bytes=MOST_PASSPHRASE)
    return raw.removesuffix(b"\n").removesuffix(b"\r")


def prompt(text: str) -> bytes:
    """Ask at the terminal without showing what is typed."""
    typed: str = click.prompt(text, hide_input=True, err=True, default="", show_default=False)
    return typed.encode()


def _check_terminal(why: str) -> None:
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(f"{why}, and there is no terminal to ask at: give --passphrase-file FILE")


def end_with(output: Output, told: Mapping[str, object], code: Exit, text: str) -> NoReturn:
    """End a command whose result is a refusal, in one document for a parser.

    Raises:
        CommandEnds: always.
    """
    output.document({**told, "error": text, "exit": int(code)})
    raise CommandEnds(code, "" if output.as_json else text)
