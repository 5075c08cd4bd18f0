"""Private keys on disk: made once, read only when nobody else can read them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from thermite.command.keyring import PassphraseNeededError, PublicKey, SigningKey
from thermite.command.signing_key import MOST_KEY_BYTES
from thermite.control.home import ControlHome
from thermite.control.private_file import create, read_private
from thermite.errors import NotFoundError, UsageError

AskPassphrase: TypeAlias = Callable[[Path], bytes]
"""Asks for the passphrase of a key file, or refuses with a UsageError."""

SUFFIX: Final = ".key"
PUBLIC_SUFFIX: Final = ".pub"
_FOR_OTHER_USE: Final = frozenset({"root.key", "rig.key"})
"""Names under which `thermite keygen` makes keys that sign no everyday command."""
_MOST_LINE: Final = 4096


@dataclass(frozen=True)
class KeptKey:
    """A key in control's folder: its file, and the public line beside it, if there is one."""

    path: Path
    public: PublicKey | None
    label: str


def make_key(path: Path, label: str, passphrase: bytes | None) -> PublicKey:
    """Make a key file and its public line beside it, `me.pub` for `me.key`; neither is overwritten.

    Raises:
        UsageError: one of the two exists, or the folder keeps no modes.
    """
    beside = public_file(path)
    for taken in (path, beside):
        if taken.exists() or taken.is_symlink():
            raise UsageError(f"{taken} exists and is not overwritten: choose another name")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = SigningKey.generate()
    create(path, key.pem(passphrase))
    create(beside, (key.public.line(label) + "\n").encode(), mode=0o644)
    return key.public


def read_key(path: Path, ask: AskPassphrase) -> SigningKey:
    """Return the key of a file, asking for its passphrase only when it has one.

    Raises:
        UsageError: readable by others, a link, no key, or a wrong passphrase.
    """
    if path.name.endswith(PUBLIC_SUFFIX) and path.is_file():
        beside = path.with_name(path.name.removesuffix(PUBLIC_SUFFIX) + SUFFIX)
        raise UsageError(f"{path} is a public line, and signing takes the private key, as {beside}")
    text = read_private(path, most_bytes=MOST_KEY_BYTES)
    try:
        return _read(path, text, None)
    except PassphraseNeededError:
        return _read(path, text, ask(path))


def command_key(home: ControlHome) -> Path:
    """Return control's only command key.

    Raises:
        NotFoundError: there is none.
        UsageError: there are several; the text names them.
    """
    found = [key.path for key in kept_keys(home) if key.path.name not in _FOR_OTHER_USE]
    if not found:
        raise NotFoundError(
            f"there is no command key in {home.keys}: make one with thermite keygen, or name one"
            " with --key FILE"
        )
    if len(found) > 1:
        names = ", ".join(path.name for path in found)
        raise UsageError(f"{home.keys} holds several keys ({names}): choose one with --key FILE")
    return found[0]


def kept_keys(home: ControlHome) -> list[KeptKey]:
    """Return the keys in control's folder, by name."""
    if not home.keys.is_dir():
        return []
    return [_kept(path) for path in sorted(home.keys.iterdir()) if path.suffix == SUFFIX]


def public_file(path: Path) -> Path:
    """Return where the public line of a key file lies: `me.pub` for `me.key`."""
    return path.with_name(path.name.removesuffix(SUFFIX) + PUBLIC_SUFFIX)


def _kept(path: Path) -> KeptKey:
    try:
        with public_file(path).open("rb") as file:
            line = file.read(_MOST_LINE).decode("utf-8", "replace")
        public, label = PublicKey.from_line(line)
    except (OSError, UsageError):
        return KeptKey(path, None, "")
    return KeptKey(path, public, label)


def _read(path: Path, text: bytes, passphrase: bytes | None) -> SigningKey:
    try:
        return SigningKey.from_pem(text, passphrase)
    except PassphraseNeededError:
        raise
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None
