"""The rigs that control knows: where their inbox is, and what they have signed of themselves."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from thermite.command.instant import write_instant
from thermite.command.keyring import PublicKey
from thermite.command.receipt import open_rig_card
from thermite.control.foreign_file import read_foreign
from thermite.control.home import ControlHome
from thermite.control.private_file import read_plain, replace
from thermite.control.toml_text import Value, table
from thermite.errors import CommandError, NotFoundError, UnreachableError, UsageError
from thermite.schema.command import MAX_COMMAND_BYTES, RigCard
from thermite.schema.ids import is_name
from thermite.schema.strict import Strict
from thermite.schema.strict_toml import NotToml, read_toml

CARD: Final = "rig.json"
MOST_BYTES: Final = 1 << 20
"""Most bytes of `rigs.toml`: about a thousand rigs."""


class RigChangedError(CommandError):
    """What a rig says of itself does not fit what control knows of it."""

    def __init__(self, message: str) -> None:
        super().__init__("rig_changed", message)


class KnownRig(Strict):
    """A rig as control keeps it: sees is a fraction, read_at RFC 3339 in UTC.

    run_s: judge time of a run of timed_kit, seconds, as its selftest found it.
    """

    inbox: str
    rig: str
    key: str
    ledger: str
    target: str
    isolation: str
    read_at: str
    grade: str | None = None
    sees: float | None = None
    timed_kit: str | None = None
    run_s: float | None = None

    @property
    def public(self) -> PublicKey:
        """The rig's public key."""
        return PublicKey.from_base64(self.key)

    @property
    def outbox(self) -> Path:
        """Where its receipts appear."""
        return Path(self.inbox).parent / "outbox"


def known_rigs(home: ControlHome) -> dict[str, KnownRig]:
    """Return the rigs of `rigs.toml` by name.

    Raises:
        UsageError: the file is not as control writes it.
    """
    raw = read_plain(home.rigs, most_bytes=MOST_BYTES)
    if raw is None:
        return {}
    if len(raw) > MOST_BYTES:
        raise UsageError(f"{home.rigs} has more than {MOST_BYTES} bytes: add the rigs anew")
    try:
        found = read_toml(raw)
        return msgspec.convert(found.get("rig", {}), dict[str, KnownRig])
    except (NotToml, msgspec.ValidationError) as error:
        raise UsageError(f"{home.rigs} can't be read: {error}: mend it or add the rigs anew") from (
            None
        )


def known_rig(home: ControlHome, name: str) -> KnownRig:
    """Return a rig by its name.

    Raises:
        NotFoundError: no such rig; the text names those there are.
    """
    rigs = known_rigs(home)
    if name not in rigs:
        there = f"known are {', '.join(rigs)}" if rigs else f"{home.root} knows none"
        raise NotFoundError(
            f"there is no rig {name!r}: {there}; add it with thermite rig add {name} --inbox DIR"
        )
    return rigs[name]


def add_rig(
    home: ControlHome, name: str, inbox: str, fingerprint: str | None
) -> tuple[KnownRig, RigCard]:
    """Take up a rig, or read a known one's card anew, and keep what it says.

    Args:
        home: control's folder.
        name: what control calls the rig.
        inbox: its inbox folder; its outbox lies beside it.
        fingerprint: what `rig serve` printed, or None to take the card's word.

    Raises:
        UnreachableError: no card there.
        RigChangedError: the card is not signed by its key, or by another one than is known.
        UsageError: a name that is none, or an inbox that can't be reached this way.
    """
    if not is_name(name):
        raise UsageError(f"{name!r} is no name for a rig: use a-z, 0-9, dot, dash and underscore")
    folder = _inbox_folder(inbox)
    rigs = known_rigs(home)
    known = rigs.get(name)
    card = read_card(folder.parent / "outbox", known.public if known else None)
    key = PublicKey.from_base64(card.key)
    if fingerprint is not None and not _fits(fingerprint, key):
        raise RigChangedError(
            f"this rig's key has the fingerprint {key.fingerprint}, and --fingerprint says"
            f" {fingerprint[:80]!a}: compare it with what rig serve printed, and send it nothing"
        )
    if known is not None and fingerprint is None and card.ledger != known.ledger:
        raise RigChangedError(
            f"rig {name} now writes ledger {card.ledger}, and control knows {known.ledger}: if its"
            " owner began a new one, run thermite rig add again with --fingerprint"
        )
    rig = _known(folder, card)
    _write(home, rigs | {name: rig})
    return rig, card


def refreshed(home: ControlHome, name: str) -> tuple[KnownRig, RigCard]:
    """Read a known rig's card anew and keep it.

    Raises:
        UnreachableError: its outbox is not there.
        RigChangedError: its key is another one than control knows.
    """
    return add_rig(home, name, known_rig(home, name).inbox, None)


def read_card(outbox: Path, rig: PublicKey | None) -> RigCard:
    """Return the card that a rig has put into its outbox.

    Raises:
        UnreachableError: there is none.
        RigChangedError: it is not signed by the key it should be signed by.
    """
    path = outbox / CARD
    try:
        raw = read_foreign(path, most_bytes=MAX_COMMAND_BYTES)
    except OSError as error:
        raise UnreachableError(
            f"{path} can't be read ({str(error.strerror).lower()}): is this the rig's"
            " inbox, and has thermite rig serve run there?"
        ) from None
    try:
        return open_rig_card(raw, rig)
    except CommandError as error:
        raise RigChangedError(
            f"{path}: {error}: if the rig was set up anew, remove it from rigs.toml and add it"
            " again with the fingerprint that rig serve printed"
        ) from None


def _inbox_folder(inbox: str) -> Path:
    if "://" in inbox:
        raise UsageError(
            f"{inbox!a} is an address, and this version reaches a rig's inbox as a folder: mount"
            " it, or carry the files with thermite inbox drop"
        )
    folder = Path(inbox).absolute()
    if all(os.path.isdir(folder / name) for name in ("inbox", "outbox")):  # noqa: PTH112 - no error
        raise UsageError(f"{inbox} is a rig's folder: give the inbox in it, {folder / 'inbox'}")
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"{str(folder)!a} is not UTF-8, as the list of rigs is: name a link to it"
        ) from None
    return folder


def _fits(given: str, key: PublicKey) -> bool:
    digits = given.strip().removeprefix("SHA256:").lower()
    return digits in {key.sha256, key.id}


def _known(folder: Path, card: RigCard) -> KnownRig:
    level: Any = card.isolation.get("level")
    return KnownRig(
        inbox=str(folder),
        rig=card.rig,
        key=card.key,
        ledger=card.ledger,
        target=card.target,
        isolation=level if isinstance(level, str) else "unknown",
        grade=card.grade,
        sees=card.sees,
        timed_kit=card.timed_kit,
        run_s=card.run_s,
        read_at=write_instant(datetime.now(UTC).replace(microsecond=0)),
    )


def _write(home: ControlHome, rigs: dict[str, KnownRig]) -> None:
    home.make()
    parts = []
    for name, rig in rigs.items():
        fields: dict[str, Value | None] = msgspec.to_builtins(rig)
        parts.append(table(("rig", name), fields))
    replace(home.rigs, "\n".join(parts).encode())
