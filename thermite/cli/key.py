"""`thermite key`: the operator's keys, and what a rig trusts."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from thermite.cli.answered import accepted
from thermite.cli.arguments import PATH, PLACE, TEXT, Whole
from thermite.cli.control_side import rig_option, signing_key, timeout_option, with_home, with_key
from thermite.cli.exits import CommandEnds, Exit
from thermite.cli.noun import NounGroup
from thermite.cli.output import Output, visible, with_output
from thermite.cli.question import agreed
from thermite.command.keyring import PublicKey, SigningKey
from thermite.command.trust import MOST_TRUST_BYTES, read_trust
from thermite.control.assign import send_order
from thermite.control.home import ControlHome
from thermite.control.key_files import kept_keys
from thermite.control.order import Order, sign_order
from thermite.control.receipts import after
from thermite.control.rigs import KnownRig, known_rig
from thermite.control.trusting import (
    check_keys,
    check_revocation,
    check_signer,
    check_version,
    read_since,
    rig_trust,
)
from thermite.errors import NotFoundError, UnreachableError, UsageError
from thermite.schema.command import RevokeBody, Trust, TrustBody, TrustedKey
from thermite.schema.ids import is_hex32

_ID_DIGITS = 32
"""Of a key's fingerprint, the first digits are its id (ledger and signing, 3.8)."""
_VERSION = Whole(2)
_readmit = click.option(
    "--readmit", is_flag=True, help="Trust a key again that the rig has revoked."
)
_Command = TypeVar("_Command", bound=Callable[..., None])


def with_wait(command: _Command) -> _Command:
    """Give a command the options `--wait` and `--timeout-s`."""
    option = click.option("--wait", is_flag=True, help="Return with the rig's receipt.")
    return option(timeout_option(120.0, "The longest that --wait waits.")(command))


@click.group("key", cls=NounGroup, epilog="Example: thermite key list")
def command() -> None:
    """Keys and trust; make a key with thermite keygen."""


@command.command("list", epilog="Example: thermite key list --json")
@click.option("--rig", "rig_name", type=TEXT, help="Whom this rig trusts, as its card says.")
@with_home
@with_output
def list_keys(output: Output, *, home: ControlHome, rig_name: str | None) -> None:
    """List the keys in control's folder, or those that a rig trusts and what each may do."""
    if rig_name is not None:
        _list_trust(output, home, rig_name)
        return
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
@click.argument("file", type=PATH)
@click.option("--rig", "rig_name", type=TEXT, help="A rig that control knows.")
@click.option("--version", type=_VERSION, help="The trust's next version: one above the rig's.")
@click.option("--state", type=PATH, help="On the rig itself, stopped: the rig's folder.")
@click.option("--replace", is_flag=True, help="With --state: the root is lost, start anew.")
@click.option("--yes", is_flag=True, help="With --state: do not ask.")
@_readmit
@with_wait
@with_key
@with_home
@with_output
def trust(  # noqa: PLR0913 - an option each
    output: Output,
    *,
    home: ControlHome,
    file: Path,
    rig_name: str | None,
    version: int | None,
    state: Path | None,
    replace: bool,
    yes: bool,
    readmit: bool,
    wait: bool,
    timeout_s: float,
    key: Path | None,
    passphrase_file: Path | None,
) -> None:
    """Say whom a rig trusts: by a signed command, or on the rig itself.

    FILE has one public line for each key, which may go on with role=root,command types=…
    from=… until=…; exactly one has the role root. With --rig it is sent as the whole next
    version, signed by the root key. With --state it is the first trust of a stopped rig; once
    there is one, only --replace changes it there, and every later audit shows that. With --wait
    it ends with 0 when the rig has accepted, with 4 when it refuses, and with 7 when no answer
    came in time.
    """
    raw = _read(file)
    if state is not None:
        if wait:
            raise UsageError("--wait is for an order to --rig: with --state nobody has to answer")
        _trust_here(output, state, raw, replace=replace, yes=yes)
        return
    if rig_name is None or version is None or replace:
        raise UsageError("give --rig and --version, or on the rig --state")
    signer = signing_key(home, key, passphrase_file)
    wait_s = timeout_s if wait else None
    _send_trust(
        output, home, rig_name, version, raw=raw, signers=[signer], wait_s=wait_s, readmit=readmit
    )


@command.command(
    "rotate", epilog="Example: thermite key rotate keys.txt --new-root new.key --rig a --version 3"
)
@click.argument("file", type=PATH)
@click.option("--new-root", type=PATH, required=True, help="The key that becomes root.")
@rig_option
@click.option("--version", type=_VERSION, required=True, help="One above the rig's version.")
@_readmit
@with_wait
@with_key
@with_home
@with_output
def rotate(  # noqa: PLR0913 - an option each
    output: Output,
    *,
    home: ControlHome,
    file: Path,
    new_root: Path,
    rig_name: str,
    version: int,
    readmit: bool,
    wait: bool,
    timeout_s: float,
    key: Path | None,
    passphrase_file: Path | None,
) -> None:
    """Make another key a rig's root: the next version of its trust, signed by both roots.

    FILE is as for thermite key trust, and its root is the new one; --key is the old root. --wait
    waits for the rig's answer, as there.
    """
    old = signing_key(home, key, passphrase_file)
    new = signing_key(home, new_root, passphrase_file)
    raw, wait_s = _read(file), timeout_s if wait else None
    _send_trust(
        output, home, rig_name, version, raw=raw, signers=[old, new], wait_s=wait_s, readmit=readmit
    )


@command.command("revoke", epilog="Example: thermite key revoke 3f9c… --rig bench --key root.key")
@click.argument("key_id", type=PLACE)
@click.option(
    "--since", type=TEXT, help="Not trusted from this time on (RFC 3339, UTC); else from now on."
)
@rig_option
@with_wait
@with_key
@with_home
@with_output
def revoke(  # noqa: PLR0913 - an option each
    output: Output,
    *,
    home: ControlHome,
    key_id: str,
    since: str | None,
    rig_name: str,
    wait: bool,
    timeout_s: float,
    key: Path | None,
    passphrase_file: Path | None,
) -> None:
    """Take a command key out of a rig's trust, signed by the root key.

    KEY_ID is the key's id, its fingerprint, or a .pub file. Later commands of it are refused;
    an audit lists those that were accepted since the time given. History stays valid. Until the
    rig has answered the key is trusted: --wait waits for it, as for thermite key trust.
    """
    now = datetime.now(UTC)
    moment = since or now.strftime("%Y-%m-%dT%H:%M:%SZ")
    read_since(moment, now)
    revoked = _key_id(key_id)
    known = _trust_of(output, home, rig_name)
    if known is not None:
        check_revocation(known, revoked, moment)
    signer = signing_key(home, key, passphrase_file)
    if known is not None:
        check_signer(known, signer.public, "revoke_key", now)
    order = sign_order(
        "revoke_key",
        RevokeBody(key=revoked, since=moment),
        rig=(rig := known_rig(home, rig_name)),
        keys=[signer],
        after=after(home, rig),
        now=now,
    )
    told = {"command": order.digest, "key": revoked, "since": moment}
    output.result(f"to rig {rig_name}: revoke key {revoked} since {moment}")
    then = f"key {revoked} is not trusted since {moment}"
    wait_s = timeout_s if wait else None
    _send(output, home, rig_name, rig, order, told=told, wait_s=wait_s, then=then)


def _list_trust(output: Output, home: ControlHome, rig_name: str) -> None:
    known = rig_trust(home, rig_name)
    if known is None:
        raise UnreachableError(f"the card of rig {rig_name} can't be read, or names no keys")
    output.document(msgspec.to_builtins(known))
    output.result(f"trust version {known.version}")
    for one in known.keys:
        revoked = f"  revoked since {one.revoked_since}" if one.revoked_since else ""
        output.result(visible(f"{_rights(one)}{revoked}"))


def _trust_of(output: Output, home: ControlHome, rig_name: str) -> Trust | None:
    """Return whom a rig trusts, or None with a warning that the rig alone will check."""
    known = rig_trust(home, rig_name)
    if known is None:
        output.warn(
            f"whom rig {rig_name} trusts is not known here (thermite key list --rig {rig_name}):"
            " whether it takes this order shows in its receipt"
        )
    return known


def _key_id(told: str) -> str:
    path = Path(told)
    if path.suffix == ".pub" and path.is_file():
        return PublicKey.from_line(_read(path).decode("utf-8", "replace"))[0].id
    found = told.removeprefix("SHA256:").lower()[:_ID_DIGITS]
    if not is_hex32(found):
        raise UsageError(f"{told!a} is no key: give its id of 32 hex digits, or a .pub file")
    return found


def _trust_here(output: Output, state: Path, raw: bytes, *, replace: bool, yes: bool) -> None:
    from thermite.harness import by_hand  # noqa: PLC0415 - the other commands need no harness

    for one in read_trust(raw):
        output.progress(_rights(one))
    if not agreed(f"let {state} trust these keys?", yes=yes):
        raise CommandEnds(Exit.WRONG_STATE, "nothing was changed")
    version, keys = by_hand.trust_here(state, raw, replace=replace)
    output.document({"version": version, "keys": [key.id for key in keys], "replaced": replace})
    output.result(f"{state} has trust version {version}: {len(keys)} keys")


def _send_trust(
    output: Output,
    home: ControlHome,
    rig_name: str,
    version: int,
    *,
    raw: bytes,
    signers: list[SigningKey],
    wait_s: float | None,
    readmit: bool,
) -> None:
    keys, rig, now = read_trust(raw), known_rig(home, rig_name), datetime.now(UTC)
    known = _trust_of(output, home, rig_name)
    if known is not None:
        check_version(known, version)
        check_signer(known, signers[0].public, "update_trust", now)
        check_keys(known, keys, [one.public for one in signers], readmit=readmit)
    order = sign_order(
        "update_trust",
        TrustBody(version=version, keys=keys),
        rig=rig,
        keys=signers,
        after=after(home, rig),
        now=now,
    )
    told = {"command": order.digest, "version": version, "keys": [key.id for key in keys]}
    for one in keys:
        output.result(_rights(one))
    output.result(f"to rig {rig_name}: trust version {version}, of these keys")
    then = f"rig {rig_name} has trust version {version}"
    _send(output, home, rig_name, rig, order, told=told, wait_s=wait_s, then=then)


def _send(
    output: Output,
    home: ControlHome,
    rig_name: str,
    rig: KnownRig,
    order: Order,
    *,
    told: dict[str, Any],
    wait_s: float | None,
    then: str,
) -> None:
    """Send an order about trust, and say what the rig answered or that this is open.

    Args:
        told: the command's document so far; wait_s: the longest wait for the answer, s, None for
            no wait; then: what holds once the rig has accepted.

    Raises:
        CommandEnds: refused, or no answer in time.
    """
    told["file"] = send_order(home, rig, order)
    output.result(f"sent: command {order.digest[:12]}")
    if wait_s is None:
        output.document(told)
        output.result(
            "not answered yet: the rig trusts as before until it has accepted, which thermite"
            f" receipts list --rig {rig_name} shows; --wait waits for it"
        )
        return
    file = str(told["file"])
    found = accepted(output, home, rig, order, file=file, told=told, timeout_s=wait_s)
    output.document(told)
    output.result(f"accepted: event {found.event_seq}; {then}")


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
