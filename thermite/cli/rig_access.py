"""`thermite rig access`: secrets for fetching, which a rig's owner puts there by hand."""

import getpass
import os
import stat
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import click
import msgspec

from thermite.cli.arguments import PATH, TEXT, FilePath
from thermite.cli.configured import default_of, needed
from thermite.cli.noun import NounGroup
from thermite.cli.output import Output, visible, with_output
from thermite.errors import UsageError
from thermite.rig.access import accesses, remove_access, set_access
from thermite.schema.access import DEFAULT_USER, MOST_BYTES, Access, check_access

STATE: Final = click.option(
    "--state",
    type=PATH,
    default=default_of("state"),
    callback=needed,
    help="The rig's folder.",
)
FILE: Final = FilePath(dir_okay=False)
OTHERS: Final = 0o077
"""Modes by which others may read or change a file; private keys are refused for the same."""


@click.group(
    "access", cls=NounGroup, epilog="Example: thermite rig access list --state /var/lib/thermite"
)
def command() -> None:
    """Secrets for private repositories, by name; an order only ever names one."""


@command.command("list", epilog="Example: thermite rig access list --state /var/lib/thermite")
@STATE
@with_output
def list_accesses(output: Output, *, state: Path) -> None:
    """List the accesses of the rig: names and places, no secret."""
    found = accesses(state)
    rows = [
        {
            "name": name,
            "for": None if isinstance(one, str) else one.place,
            "secret": None if isinstance(one, str) else "file" if one.secret else "key_command",
            "problem": one if isinstance(one, str) else None,
        }
        for name, one in found.items()
    ]
    output.document({"accesses": rows})
    for name, one in found.items():
        output.result(visible(f"{name}  {_shown(one)}"))
    if not found:
        output.result("no access is set: thermite rig access set NAME --for ADDRESS")


@command.command(
    "set",
    epilog="Example: thermite rig access set work --for https://git.example.org/team"
    " --secret token.txt --state /var/lib/thermite",
)
@click.argument("name", type=TEXT)
@click.option("--for", "place", type=TEXT, required=True, help="Addresses that it is for begin so.")
@click.option("--secret", type=FILE, help="A file with the token or private key; - for stdin.")
@click.option("--key-command", is_flag=True, help="rig.toml's key_command prints the secret.")
@click.option(
    "--user", type=TEXT, default=DEFAULT_USER, show_default=True, help="The user's name, https."
)
@click.option("--trusted", type=FILE, help="Certificates (https) or known_hosts lines (ssh).")
@STATE
@with_output
def set_one(
    output: Output,
    *,
    state: Path,
    name: str,
    place: str,
    secret: Path | None,
    key_command: bool,
    user: str,
    trusted: Path | None,
) -> None:
    """Set the access NAME: a token for an https address, or a private key for an ssh one.

    The secret is read from a file that only its owner reads, from standard input, or asked for;
    never from the command line, which others on the machine can see.
    """
    if key_command and secret is not None:
        raise UsageError("give --secret or --key-command, not both")
    if trusted == Path("-"):
        raise UsageError("--trusted needs a file: standard input is for the secret")
    access = Access(place=place, user=user, trusted=None if trusted is None else _read(trusted))
    check_access(access)
    if not key_command:
        told = _secret(secret, is_ssh=access.is_ssh)
        access = msgspec.structs.replace(access, secret=told)
    replaced = set_access(state, name, access)
    output.document({"name": name, "for": place, "replaced": replaced})
    output.result(visible(f"{'replaced' if replaced else 'set'} access {name}  {_shown(access)}"))


@command.command("remove", epilog="Example: thermite rig access remove work --state DIR")
@click.argument("name", type=TEXT)
@STATE
@with_output
def remove(output: Output, *, state: Path, name: str) -> None:
    """Remove the access NAME; orders that name it are then refused."""
    remove_access(state, name)
    output.document({"name": name})
    output.result(f"removed access {name}")


def _secret(file: Path | None, *, is_ssh: bool) -> str:
    """Return the secret as it is kept: a key with its last line ended, a token without."""
    if file is None and sys.stdin.isatty():
        text = getpass.getpass("secret: ")
    else:
        text = _read(Path("-") if file is None else file, is_secret=True)
    text = text.replace("\r\n", "\n").strip()
    return f"{text}\n" if is_ssh and text else text


def _read(file: Path, *, is_secret: bool = False) -> str:
    """Return a small file's text, without ever repeating it in a message."""
    given = str(file) == "-"
    try:
        with nullcontext(sys.stdin.buffer) if given else file.open("rb") as opened:
            if is_secret:
                _check_private(opened.fileno(), None if given else file)
            raw = opened.read(MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise UsageError(f"{file} has more than {MOST_BYTES} bytes, which is no such file")
        return raw.decode()
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file} is not UTF-8 text") from None


def _check_private(descriptor: int, file: Path | None) -> None:
    """Refuse a file with a secret that others may read; what comes through a pipe is nobody's.

    Args:
        file: its name; None: it is standard input.
    """
    found = os.fstat(descriptor)
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISREG(found.st_mode) or not mode & OTHERS:
        return
    name, it = ("the file on standard input", "it") if file is None else (file, file)
    raise UsageError(
        f"{name} can be read or changed by others (mode {mode:04o}), and so could the secret: run"
        f" chmod 600 on {it}; on a file system without modes (FAT) pipe it in"
    )


def _shown(access: Access | str) -> str:
    if isinstance(access, str):
        return f"can't be used: {access}: set it again"
    kind = "key" if access.is_ssh else "token"
    return f"{kind} for {access.place}" + (", from key_command" if access.secret is None else "")
