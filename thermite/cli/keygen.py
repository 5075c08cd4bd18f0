"""`thermite keygen`: make an Ed25519 key."""

import platform
from pathlib import Path

import click

from thermite.cli.arguments import PATH, TEXT
from thermite.cli.control_side import new_passphrase, with_home, with_passphrase
from thermite.cli.output import Output, with_output
from thermite.control.home import ControlHome
from thermite.control.key_files import make_key, public_file
from thermite.errors import UsageError


@click.command("keygen", epilog="Example: thermite keygen keys/me.key --label 'Anna, laptop'")
@click.argument("file", type=PATH, required=False)
@click.option(
    "--role",
    type=click.Choice(["command", "root", "rig"]),
    default="command",
    show_default=True,
    help="What it is for: giving orders, changing trust, or a rig's own signature.",
)
@click.option("--label", type=TEXT, help="Who or what has the key; stands in its public line.")
@click.option("--no-passphrase", is_flag=True, help="Leave the file unencrypted, as a rig's is.")
@with_passphrase
@with_home
@with_output
def command(
    output: Output,
    *,
    home: ControlHome,
    file: Path | None,
    role: str,
    label: str | None,
    no_passphrase: bool,
    passphrase_file: Path | None,
) -> None:
    """Make a key in FILE (else in control's folder) and print its fingerprint.

    The public line is printed and kept beside the key, in a file ending in .pub.
    """
    if no_passphrase and passphrase_file is not None:
        raise UsageError("--no-passphrase and --passphrase-file contradict each other: give one")
    plain = no_passphrase or (role == "rig" and passphrase_file is None)
    passphrase = None if plain else new_passphrase(passphrase_file)
    if file is None:
        home.make()
    path = file if file is not None else home.keys / f"{role}.key"
    label = label if label is not None else f"{role}@{platform.node()}"
    public = make_key(path, label, passphrase)
    output.document(
        {
            "file": str(path),
            "public_file": str(public_file(path)),
            "role": role,
            "id": public.id,
            "fingerprint": public.fingerprint,
            "line": public.line(label),
            "encrypted": passphrase is not None,
        }
    )
    output.result(f"made {path} ({'encrypted' if passphrase else 'not encrypted'}) for role {role}")
    output.result(f"fingerprint {public.fingerprint}")
    output.result(public.line(label))
