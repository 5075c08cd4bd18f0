"""A public key, the names it goes by, and the line in which people hand it on."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from thermite.command import strict_base64
from thermite.command.curve import key_problem
from thermite.errors import UsageError
from thermite.schema.ids import KeyId

LINE_WORD: Final = "thermite-ed25519"
_SSH_WORD: Final = "ssh-ed25519"
_SSH_PREFIX: Final = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"  # RFC 8709, 4
_OTHER_SSH: Final = ("ssh-rsa", "ssh-dss", "ecdsa-", "sk-")
_RAW_BASE64: Final = 44  # base64 digits of 32 bytes


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 public key of full order; raw: its 32 bytes."""

    raw: bytes

    def __post_init__(self) -> None:
        """Refuse what is no key to trust.

        Raises:
            UsageError: wrong length, no point of the curve, or a point of low order.
        """
        problem = key_problem(self.raw)
        if problem is not None:
            raise UsageError(problem)

    @classmethod
    def from_base64(cls, text: str) -> Self:
        """Return the key whose raw bytes are written in base64.

        Raises:
            UsageError: no base64, or no key to trust.
        """
        try:
            raw = strict_base64.decode(text)
        except ValueError as error:
            raise UsageError(f"a public key is 32 bytes in base64, and this is {error}") from None
        return cls(raw)

    @classmethod
    def from_line(cls, line: str) -> tuple[Self, str]:
        """Return key and label of a `thermite-ed25519` or `ssh-ed25519` line.

        Raises:
            UsageError: another kind of line; the text says which, and never repeats it.
        """
        words = line.strip("\ufeff \t\r\n").split()
        if len(words) < 2 or words[0] not in {LINE_WORD, _SSH_WORD}:  # noqa: PLR2004 (word, key)
            raise UsageError(_other_kind(words))
        label = " ".join(words[2:])
        if words[0] == LINE_WORD:
            return cls.from_base64(words[1]), label
        return cls(_ssh_raw(words[1])), label

    @cached_property
    def base64(self) -> str:
        """The raw bytes in base64."""
        return strict_base64.encode(self.raw)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the raw bytes, hex."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def id(self) -> KeyId:
        """The key's id: the first 32 hex digits of its SHA-256; a rig's id is its key's."""
        return KeyId(self.sha256[:32])

    @property
    def fingerprint(self) -> str:
        """What people compare: `SHA256:<64 hex>`."""
        return f"SHA256:{self.sha256}"

    @cached_property
    def _verifying(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.raw)

    def line(self, label: str) -> str:
        """Return the public line `thermite-ed25519 <base64> <label>`."""
        return f"{LINE_WORD} {self.base64} {label}".rstrip()

    def signed(self, signature: bytes, message: bytes) -> bool:
        """Return whether this key made the signature over the message."""
        try:
            self._verifying.verify(signature, message)
        except InvalidSignature:
            return False
        return True


def _ssh_raw(text: str) -> bytes:
    try:
        blob = strict_base64.decode(text)
    except ValueError as error:
        raise UsageError(f"the key of this ssh-ed25519 line is {error}") from None
    if not blob.startswith(_SSH_PREFIX):
        raise UsageError("this ssh-ed25519 line does not hold an Ed25519 key")
    return blob[len(_SSH_PREFIX) :]


def _other_kind(words: list[str]) -> str:
    """Say what a line is that is no public line; key material is never repeated."""
    wanted = f"a public line is `{LINE_WORD} <base64> <label>`"
    if not words:
        return f"the line is empty, and {wanted}"
    if words[0].startswith("-----BEGIN"):
        kind = "private key" if "PRIVATE" in words else "PEM file"
        return f"this is a {kind}, and {wanted}: give the line that thermite keygen printed"
    if words[0].startswith(_OTHER_SSH):
        return f"this is a key of the kind {words[0][:32]!a}, and Thermite trusts Ed25519 only"
    if len(words) == 1 and len(words[0]) == _RAW_BASE64:
        return (
            "this is bare base64, which may be a public or a private key: for a public key"
            f" write `{LINE_WORD} <base64> <label>`"
        )
    return f"this is no public key, and {wanted}"
