"""`thermite key`: the operator's keys, and what a rig trusts."""

from datetime import UTC, datetime
from pathlib import Path

import click

from thermite.cli.control_side import FILE, signing_key, with_home, with_key
from thermite.cli.noun import NounGroup
from thermite.cli.output import Output, with_output
from thermite.command.trust import MOST_TRUST_BYTES, read_trust
from thermite.control.assign import send_order
from thermite.control.home import ControlHome
from thermite.control.key_files import kept_keys
from thermite.control.order import sign_order
from thermite.control.receipts import after
from thermite.control.rigs import known_rig
from thermite.errors import NotFoundError
from thermite.schema.command import TrustBody, TrustedKey


@click.group("key", cls=NounGroup, epilog="Example: thermite key list")
def command() -> None:
    """Keys and trust; make a key with thermite keygen."""


@command.command("list", epilog="Example: thermite key list --json")
@with_home
@with_output
def list_keys(output: Output, *, home: ControlHome) -> None:
    """List the keys in control's folder."""
    keys = kept_keys(home)
    rows = []
    for key in keys:
        public = key.public
        rows.append(
            {
                "file": str(key.path),
                "id": public.id if public else None,
                "fingerprint": public.fingerprint if public else None,
                "label": key.label,
            }
        )
        shown = public.fingerprint if public else "no public line beside it"
        output.result(f"{key.path.name}  {shown}  {key.label}")
    if not keys:
        output.result(f"no keys in {home.keys}: make one with thermite keygen")
    output.document({"keys": rows})


@command.command("trust", epilog="Example: thermite key trust keys.txt --rig bench --version 2")
@click.argument("file", type=FILE)
@click.option("--rig", "rig_name", required=True, help="A rig that control knows.")
@click.option(
    "--version",
    type=click.IntRange(min=2),
    required=True,
    help="The trust's next version: one above what the rig has.",
)
@with_key
@with_home
@with_output
def trust(
    output: Output,
    *,
    home: ControlHome,
    file: Path,
    rig_name: str,
    version: int,
    key: Path | None,
    passphrase_file: Path | None,
) -> None:
    """Send a rig the whole next version of its trust, signed by the root key.

    FILE has one public line for each key, which may go on with role=root,command types=…
    from=… until=…; exactly one has the role root. A rig's first trust is given on the rig:
    thermite rig serve --trust FILE.
    """
    keys = read_trust(_read(file))
    rig = known_rig(home, rig_name)
    order = sign_order(
        "update_trust",
        TrustBody(version=version, keys=keys),
        rig=rig,
        keys=[signing_key(home, key, passphrase_file)],
        after=after(home, rig),
        now=datetime.now(UTC),
    )
    name = send_order(home, rig, order)
    output.document(
        {"command": order.digest, "file": name, "version": version, "keys": [k.id for k in keys]}
    )
    for one in keys:
        output.result(_rights(one))
    output.result(f"sent trust version {version} to rig {rig_name}: command {order.digest[:12]}")


def _rights(key: TrustedKey) -> str:
    types = f" for {', '.join(key.types)}" if key.types is not None else ""
    begins = f" from {key.from_}" if key.from_ else ""
    ends = f" until {key.until}" if key.until else ""
    return f"{key.id}  {' and '.join(key.roles)}{types}{begins}{ends}  {key.label}"


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            return opened.read(MOST_TRUST_BYTES + 1)
    except FileNotFoundError:
        raise NotFoundError(f"there is no trust file {file}") from None
