"""The keys a rig trusts, and which of them signed an envelope."""

from collections.abc import Sequence
from typing import Final

from thermite.command.envelope import Envelope
from thermite.command.public_key import PublicKey
from thermite.command.signing_key import PassphraseNeededError, SigningKey
from thermite.errors import UsageError
from thermite.schema.command import TrustedKey

__all__ = ["MOST_KEYS", "Keyring", "PassphraseNeededError", "PublicKey", "SigningKey"]

MOST_KEYS: Final = 64
"""Most keys of one trust: an envelope's 8 signatures are tried with each of them, and 512
verifications take 55 ms (ledger and signing, 2.4)."""


class Keyring:
    """Trusted keys, by their public bytes: two entries of one key are one signer."""

    def __init__(self, keys: Sequence[TrustedKey]) -> None:
        """Decode the keys.

        Raises:
            UsageError: an entry's public key is none to trust, or stands there twice.
        """
        self._keys: dict[PublicKey, TrustedKey] = {}
        for key in keys:
            public = PublicKey.from_base64(key.public)
            if public in self._keys:
                raise UsageError(f"key {public.id} is listed twice: a key has one list of rights")
            self._keys[public] = key

    def find_signers(self, envelope: Envelope) -> list[TrustedKey]:
        """Return the trusted keys that signed, each once, whatever their rights are now.

        Key ids are not looked at, and signatures that fit no trusted key are passed over.
        """
        return [key for public, key in self._keys.items() if envelope.is_signed_by(public)]
