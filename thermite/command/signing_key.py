"""A private key: made, read from the text of a file, written as text, used."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Self

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from thermite.command.pkcs8 import encrypted_pem
from thermite.command.public_key import LINE_WORD, PublicKey
from thermite.errors import UsageError

MOST_KEY_BYTES: Final = 64 * 1024
"""More is no key file: an RSA key of 16,384 bits in PEM takes 13 kB."""

_MAKE_ONE: Final = "make one with thermite keygen"


class PassphraseNeededError(UsageError):
    """The key is encrypted and no passphrase was given: ask for it and read again."""


@dataclass(frozen=True)
class SigningKey:
    """An Ed25519 private key; its repr shows the public half only."""

    _private: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def generate(cls) -> Self:
        """Return a new key from the system's randomness."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_raw(cls, seed: bytes) -> Self:
        """Return the key of a 32-byte seed (RFC 8032, 5.1.5); for test vectors."""
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def from_pem(cls, text: bytes, passphrase: bytes | None) -> Self:
        """Return the key of a PKCS#8 or OpenSSH private key file.

        A byte-order mark, CRLF line ends and a missing last line end are taken as they come.

        Raises:
            PassphraseNeededError: encrypted, and passphrase is None.
            UsageError: another kind of file or key, or a wrong passphrase; the text says
                which, and never holds key material.
        """
        plain = _plain(text)
        if not plain.startswith(b"-----BEGIN "):
            raise UsageError(_not_pem(plain))
        label = plain.split(b"-----", 2)[1].removeprefix(b"BEGIN ").decode("ascii", "replace")
        if label not in {"PRIVATE KEY", "ENCRYPTED PRIVATE KEY", "OPENSSH PRIVATE KEY"}:
            raise UsageError(_wrong_label(label))
        return cls(_ed25519(_load(plain, label, passphrase)))

    def pem(self, passphrase: bytes | None) -> bytes:
        """Return the key as PKCS#8 PEM, encrypted when a passphrase is given.

        Raises:
            UsageError: an empty passphrase, which would protect nothing.
        """
        der = self._private.private_bytes(
            serialization.Encoding.DER,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        if passphrase is not None:
            if not passphrase:
                raise UsageError("an empty passphrase protects nothing: give one, or ask for none")
            return encrypted_pem(der, passphrase)
        return self._private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    @cached_property
    def public(self) -> PublicKey:
        """The public half."""
        raw = self._private.public_key().public_bytes(
            serialization.Encoding.Raw, serialization.PublicFormat.Raw
        )
        return PublicKey(raw)

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature over the message."""
        return self._private.sign(message)


def _plain(text: bytes) -> bytes:
    if len(text) > MOST_KEY_BYTES:
        raise UsageError(f"a key file has at most {MOST_KEY_BYTES} bytes, this one {len(text)}")
    unmarked = text.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    return unmarked.strip() + b"\n"


def _not_pem(plain: bytes) -> str:
    wanted = "a private key file begins with -----BEGIN PRIVATE KEY-----"
    if plain.startswith((LINE_WORD.encode(), b"ssh-", b"ecdsa-", b"sk-")):
        return f"this is a public key, and signing takes the private one: {wanted}"
    if plain == b"\n":
        return f"the key file is empty: {_MAKE_ONE}"
    if b"\n" not in plain.strip() and b" " not in plain.strip():
        return f"this is one bare word, and {wanted}: {_MAKE_ONE}"
    return f"this is no key file: {wanted}"


def _wrong_label(label: str) -> str:
    if "PUBLIC" in label or "CERTIFICATE" in label:
        return f"this file holds a {label.lower()[:40]}, and signing takes the private key"
    return f"this file holds the kind {label[:40]!a}, and Thermite signs with Ed25519: {_MAKE_ONE}"


def _load(plain: bytes, label: str, passphrase: bytes | None) -> object:
    """Parse the PEM; what the library cannot parse or decrypt is said in our words."""
    ssh = label.startswith("OPENSSH")
    load = serialization.load_ssh_private_key if ssh else serialization.load_pem_private_key
    given = None if label == "PRIVATE KEY" else passphrase
    try:
        return load(plain, given)
    except TypeError:
        if ssh and passphrase is not None:
            return load(plain, None)  # a passphrase for a key that has none: nothing to decrypt
        raise PassphraseNeededError("this key has a passphrase, and none was given") from None
    except UnsupportedAlgorithm as error:
        if ssh and "bcrypt" in str(error):
            raise UsageError(
                "reading an OpenSSH key with a passphrase takes the package bcrypt, which is not"
                f" installed: install it, or {_MAKE_ONE}"
            ) from None
        raise UsageError(f"this key file is of a kind that can't be read: {_MAKE_ONE}") from None
    except ValueError:
        if given is not None:
            raise UsageError("the passphrase does not open this key, or the file is damaged") from (
                None
            )
        if ssh and b"bcrypt" in plain:
            raise PassphraseNeededError("this key has a passphrase, and none was given") from None
        raise UsageError(f"this key file is damaged: restore it, or {_MAKE_ONE}") from None


def _ed25519(key: object) -> Ed25519PrivateKey:
    if isinstance(key, Ed25519PrivateKey):
        return key
    kind = type(key).__name__.removeprefix("_").removesuffix("PrivateKey")
    raise UsageError(f"this is a key of the kind {kind}, and Thermite signs with Ed25519 only")
